package standalone

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// newEtcdLogger returns a logger for etcd that passes warnings and errors to logger, and to life what etcd takes for a
// reason to end the process.
func newEtcdLogger(logger klog.Logger, life *lifecycle) *zap.Logger {
	core := &klogCore{logger: logger.WithName("etcd"), life: life}
	return zap.New(core, zap.WithFatalHook(life), zap.WithPanicHook(life))
}

// klogCore is a zapcore.Core that writes to klog.
type klogCore struct {
	logger klog.Logger
	life   *lifecycle
}

var _ zapcore.Core = &klogCore{}

func (c *klogCore) Enabled(level zapcore.Level) bool {
	return level >= zapcore.WarnLevel
}

func (c *klogCore) With(fields []zapcore.Field) zapcore.Core {
	return &klogCore{logger: c.logger.WithValues(keysAndValues(fields)...), life: c.life}
}

func (c *klogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c *klogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	details := keysAndValues(fields)
	switch {
	case entry.Level <= zapcore.ErrorLevel && c.routine(entry.Message, cause(fields)):
		c.logger.V(4).Info(entry.Message, details...)
	case entry.Level == zapcore.WarnLevel:
		c.logger.Info(entry.Message, details...)
	default:
		c.logger.Error(nil, entry.Message, details...)
	}
	return nil
}

func (c *klogCore) Sync() error {
	return nil
}

// routine tells the lines of a healthy start and close from those worth reading.
func (c *klogCore) routine(message string, err error) bool {
	phase := c.life.phase.Load()
	switch {
	case phase == closing: // each listener and each request that Close cuts off is an error to etcd
		return true
	case strings.Contains(message, "server on single port"): // there is one socket
		return true
	case phase == starting && strings.Contains(message, "failed to publish"): // it tries again until its log is applied
		return true
	case strings.Contains(message, "cannot campaign"): // not before the member has added itself; it tries again in a tick
		return true
	case strings.Contains(message, "detect storage schema version"), // known after the first snapshot of the log
		err != nil && strings.Contains(err.Error(), "missing term information"):
		return true
	}
	return false
}

func keysAndValues(fields []zapcore.Field) []any {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range fields {
		field.AddTo(encoder)
	}
	var list []any
	for _, key := range slices.Sorted(maps.Keys(encoder.Fields)) {
		list = append(list, key, encoder.Fields[key])
	}
	return list
}

// cause returns the first error among fields, or nil.
func cause(fields []zapcore.Field) error {
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok {
			return err
		}
	}
	return nil
}

// The phases of an etcd.
const (
	starting int32 = iota
	serving
	closing
)

// lifecycle makes errors of what would end the process while etcd starts: where a file is damaged, etcd calls Fatal or
// Panic, in whatever goroutine. Later they do end the process, for no write may be answered any more.
type lifecycle struct {
	phase    atomic.Int32
	failures chan error
}

func newLifecycle() *lifecycle {
	return &lifecycle{failures: make(chan error, 1)}
}

// fail keeps the first error only.
func (l *lifecycle) fail(err error) {
	select {
	case l.failures <- err:
	default:
	}
}

// recover is deferred by the goroutine that starts etcd.
func (l *lifecycle) recover() {
	if r := recover(); r != nil {
		l.fail(fmt.Errorf("etcd panicked, a file may be damaged: %v", r))
	}
}

// OnWrite follows each line of level fatal or panic (zapcore.CheckWriteHook).
func (l *lifecycle) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	if l.phase.Load() != starting {
		klog.Flush()
		panic("etcd: " + entry.Message)
	}
	err := errors.New(entry.Message)
	if cause := cause(fields); cause != nil {
		err = fmt.Errorf("%s: %w", entry.Message, cause)
	}
	l.fail(err)
	runtime.Goexit()
}
