package attr

import (
	"strings"
	"sync"
)

// memory is a backing without a file.
type memory struct {
	maxEntries int

	mu struct {
		sync.Mutex
		values map[string]aged
		order  []agedKey // oldest first; those whose age is not their key's are stale
		age    uint64
	}
}

type aged struct {
	value []byte
	age   uint64
}

type agedKey struct {
	key string
	age uint64
}

var _ backing = (*memory)(nil)

func newMemory(maxEntries int) *memory {
	m := &memory{maxEntries: min(maxEntries, memoryEntries)}
	m.mu.values = make(map[string]aged)
	return m
}

func (m *memory) get(key string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.values[key].value
}

func (m *memory) keys(prefix string) (keys []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.mu.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (m *memory) apply(batch map[string]change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, c := range batch {
		if c.value == nil {
			delete(m.mu.values, key)
			continue
		}
		m.mu.age++
		m.mu.values[key] = aged{c.value, m.mu.age}
		m.mu.order = append(m.mu.order, agedKey{key, m.mu.age})
	}
	for len(m.mu.values) > m.maxEntries {
		oldest := m.mu.order[0]
		m.mu.order = m.mu.order[1:]
		if m.liveLocked(oldest) {
			delete(m.mu.values, oldest.key)
		}
	}
	m.compactLocked()
	return nil
}

func (m *memory) liveLocked(k agedKey) bool { return m.mu.values[k.key].age == k.age }

// compactLocked drops stale keys once they are the larger part.
func (m *memory) compactLocked() {
	if len(m.mu.order) <= 2*len(m.mu.values)+64 {
		return
	}
	live := make([]agedKey, 0, len(m.mu.values))
	for _, k := range m.mu.order {
		if m.liveLocked(k) {
			live = append(live, k)
		}
	}
	m.mu.order = live
}

func (m *memory) damaged() bool { return false }

func (m *memory) close() error { return nil }
