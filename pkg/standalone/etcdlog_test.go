package standalone

import (
	"errors"
	"testing"

	"go.uber.org/zap"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

func TestEtcdIsSilentWhenAllIsWell(t *testing.T) {
	logger := newLogger(t)
	ctx := klog.NewContext(t.Context(), logger)
	dir := t.TempDir()
	for range 3 {
		etcd, err := StartEtcd(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		etcd.Close()
	}
	if log := logged(t, logger); log != "" {
		t.Errorf("etcd logged:\n%s", log)
	}
}

func TestEtcdLoggerPassesWarningsAndErrors(t *testing.T) {
	testCases := map[string]struct {
		phase int32
		log   func(*zap.Logger)
		want  string
	}{
		"a warning": {
			phase: serving,
			log:   func(l *zap.Logger) { l.Warn("slow", zap.String("took", "2s"), zap.Int("entries", 3)) },
			want:  `INFO etcd: slow entries=3 took="2s"` + "\n",
		},
		"an error": {
			phase: serving,
			log:   func(l *zap.Logger) { l.With(zap.String("path", "x")).Error("no", zap.Error(errors.New("disk"))) },
			want:  `ERROR etcd: no path="x" error="disk"` + "\n",
		},
		"no information": {
			phase: serving,
			log:   func(l *zap.Logger) { l.Info("hello") },
		},
		"no error of closing": {
			phase: closing,
			log:   func(l *zap.Logger) { l.Error("listener closed") },
		},
		"a failure to publish that lasts": {
			phase: serving,
			log:   func(l *zap.Logger) { l.Warn("failed to publish") },
			want:  "INFO etcd: failed to publish\n",
		},
		"no failure to publish at start": {
			phase: starting,
			log:   func(l *zap.Logger) { l.Warn("failed to publish") },
		},
	}
	for name, tc := range testCases {
		t.Run(name, func(t *testing.T) {
			logger := newLogger(t)
			life := newLifecycle()
			life.phase.Store(tc.phase)
			tc.log(newEtcdLogger(logger, life))
			if got := logged(t, logger); got != tc.want {
				t.Errorf("logged %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAFatalLineOfEtcd(t *testing.T) {
	for name, log := range map[string]func(*zap.Logger, string, ...zap.Field){
		"fatal": (*zap.Logger).Fatal,
		"panic": (*zap.Logger).Panic,
	} {
		t.Run(name+" at start is an error", func(t *testing.T) {
			life := newLifecycle()
			cause := errors.New("no space left")
			go log(newEtcdLogger(klog.FromContext(t.Context()), life), "write", zap.Error(cause))
			err := <-life.failures
			wantError(t, err, "write: no space left")
			if !errors.Is(err, cause) {
				t.Errorf("error %v does not wrap its cause", err)
			}
		})
		t.Run(name+" later ends the process", func(t *testing.T) {
			life := newLifecycle()
			life.phase.Store(serving)
			defer func() {
				if recover() == nil {
					t.Error("the goroutine goes on")
				}
			}()
			log(newEtcdLogger(klog.FromContext(t.Context()), life), "write")
		})
	}
}

// newLogger returns a logger as verbose as a server is by default.
func newLogger(t *testing.T) klog.Logger {
	return ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
}

// logged returns what logger wrote, one line a message, without times and places.
func logged(t *testing.T, logger klog.Logger) string {
	t.Helper()
	underlier, ok := logger.GetSink().(ktesting.Underlier)
	if !ok {
		t.Fatalf("logger writes to a %T", logger.GetSink())
	}
	return underlier.GetBuffer().String()
}
