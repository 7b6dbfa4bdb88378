package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// lockTimeout is how long to wait for another process that holds the state file.
const lockTimeout = time.Second

// store is the state. Readers hold mu for reading. A writer holds it for writing, changes tables, and then
// commits all of it or discards all of it.
type store struct {
	mu       sync.RWMutex
	db       *bolt.DB // nil: in memory only
	networks table[network]
	subnets  table[subnet]
	ports    table[port]
	routers  table[router]
	quotas   table[map[string]int] // limits that were set, by project
	groups   table[string]         // the default security group, by project
}

// saved is what the store needs of a table of any type.
type saved interface {
	load(*bolt.Tx) error
	save(*bolt.Tx) error
	changes() int
	apply()
	discard()
}

func openStore(path string) (*store, error) {
	s := &store{
		networks: newTable[network]("networks"),
		subnets:  newTable[subnet]("subnets"),
		ports:    newTable[port]("ports"),
		routers:  newTable[router]("routers"),
		quotas:   newTable[map[string]int]("quotas"),
		groups:   newTable[string]("security-groups"),
	}
	if path == "" {
		return s, nil
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("open state file %s: another process holds it: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("open state file %s: %w", path, err)
	}
	s.db = db
	if err := db.Update(s.load); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("read state file %s: %w", path, err)
	}
	return s, nil
}

func (s *store) tables() []saved {
	return []saved{&s.networks, &s.subnets, &s.ports, &s.routers, &s.quotas, &s.groups}
}

func (s *store) load(tx *bolt.Tx) error {
	for _, t := range s.tables() {
		if err := t.load(tx); err != nil {
			return err
		}
	}
	return nil
}

// commit puts all changes on disk in one transaction, and only then lets readers see them.
func (s *store) commit() error {
	changes := 0
	for _, t := range s.tables() {
		changes += t.changes()
	}
	if changes == 0 {
		return nil
	}
	if s.db != nil {
		if err := s.db.Update(s.save); err != nil {
			return fmt.Errorf("commit state: %w", err)
		}
	}
	for _, t := range s.tables() {
		t.apply()
	}
	return nil
}

func (s *store) save(tx *bolt.Tx) error {
	for _, t := range s.tables() {
		if err := t.save(tx); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) discard() {
	for _, t := range s.tables() {
		t.discard()
	}
}

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// table holds values by id: the committed ones, and the changes of the open transaction over them. A value is
// never modified in place, slices and maps in it included: get, change the copy, put.
type table[T any] struct {
	name      string
	committed map[string]T
	changed   map[string]*T // nil: deleted
}

func newTable[T any](name string) table[T] {
	return table[T]{name: name, committed: map[string]T{}, changed: map[string]*T{}}
}

func (t *table[T]) get(id string) (value T, ok bool) {
	if changed, ok := t.changed[id]; ok {
		if changed == nil {
			return value, false
		}
		return *changed, true
	}
	value, ok = t.committed[id]
	return value, ok
}

// all yields the values in no order.
func (t *table[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, value := range t.changed {
			if value != nil && !yield(*value) {
				return
			}
		}
		for id, value := range t.committed {
			if _, ok := t.changed[id]; !ok && !yield(value) {
				return
			}
		}
	}
}

func (t *table[T]) put(id string, value T) { t.changed[id] = &value }
func (t *table[T]) delete(id string)       { t.changed[id] = nil }
func (t *table[T]) changes() int           { return len(t.changed) }
func (t *table[T]) discard()               { clear(t.changed) }
func (t *table[T]) bucket() []byte         { return []byte(t.name) }

func (t *table[T]) apply() {
	for id, value := range t.changed {
		if value == nil {
			delete(t.committed, id)
		} else {
			t.committed[id] = *value
		}
	}
	clear(t.changed)
}

func (t *table[T]) load(tx *bolt.Tx) error {
	bucket, err := tx.CreateBucketIfNotExists(t.bucket())
	if err != nil {
		return fmt.Errorf("create bucket %s: %w", t.name, err)
	}
	return bucket.ForEach(func(id, text []byte) error {
		var value T
		if err := json.Unmarshal(text, &value); err != nil {
			return fmt.Errorf("decode %s %s: %w", t.name, id, err)
		}
		t.committed[string(id)] = value
		return nil
	})
}

func (t *table[T]) save(tx *bolt.Tx) error {
	bucket := tx.Bucket(t.bucket())
	for id, value := range t.changed {
		if value == nil {
			if err := bucket.Delete([]byte(id)); err != nil {
				return fmt.Errorf("delete %s %s: %w", t.name, id, err)
			}
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", t.name, id, err)
		}
		if err := bucket.Put([]byte(id), text); err != nil {
			return fmt.Errorf("write %s %s: %w", t.name, id, err)
		}
	}
	return nil
}
