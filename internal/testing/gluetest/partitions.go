package gluetest

import (
	"encoding/json"
	"sort"
)

const (
	partitionPage = 1000
	segments      = 10
)

func getPartitions(s *store, c *Call) (json.RawMessage, error) {
	size, err := c.pageSize(partitionPage)
	if err != nil {
		return nil, err
	}
	seg, err := c.segment()
	if err != nil {
		return nil, err
	}
	from, err := c.partitionToken(seg)
	if err != nil {
		return nil, err
	}
	t, err := s.table(c.names())
	if err != nil {
		return nil, err
	}
	matching, err := t.matching(c.text("Expression"))
	if err != nil {
		return nil, err
	}
	at := sort.Search(len(matching), func(i int) bool { return matching[i].seq > from })
	entries := []json.RawMessage{}
	var last int64
	for _, p := range matching[at:] {
		if p.seq%seg.Total != seg.Number {
			continue
		}
		if len(entries) == size {
			return object{{"Partitions", list(entries)}, {"NextToken", quote(partitionToken(seg, last))}}.raw(), nil
		}
		entry, err := p.raw(c.flag("ExcludeColumnSchema"))
		if err != nil {
			return nil, err
		}
		entries, last = append(entries, entry), p.seq
	}
	return object{{"Partitions", list(entries)}}.raw(), nil
}

// matching are the partitions for which an expression is true, in their order.
func (t *table) matching(text string) ([]*partition, error) {
	if text == "" {
		return t.partitions, nil
	}
	e, err := parseExpression(text, t.keys())
	if err != nil {
		return nil, err
	}
	var out []*partition
	for _, p := range t.partitions {
		ok, err := e.eval(p.values)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, p)
		}
	}
	return out, nil
}

func getPartition(s *store, c *Call) (json.RawMessage, error) {
	p, _, err := s.partition(c, "PartitionValues")
	if err != nil {
		return nil, err
	}
	entry, err := p.raw(false)
	return object{{"Partition", entry}}.raw(), err
}

// partition is the one of which a field of a call has the values, and its table.
func (s *store) partition(c *Call, field string) (*partition, *table, error) {
	values, err := c.strings(field)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.table(c.names())
	if err != nil {
		return nil, nil, err
	}
	if err = t.checkValues(values); err != nil {
		return nil, nil, err
	}
	p, err := t.partition(values)
	return p, t, err
}

func (t *table) checkValues(values []string) error {
	if len(values) != len(t.keys()) {
		return invalid("The number of partition keys do not match the number of partition values")
	}
	return nil
}

func createPartition(s *store, c *Call) (json.RawMessage, error) {
	in, err := c.entry("PartitionInput")
	if err != nil {
		return nil, err
	}
	t, err := s.table(c.names())
	if err != nil {
		return nil, err
	}
	return empty(), s.create(t, c, in)
}

// create registers what an input says.
func (s *store) create(t *table, c *Call, in object) error {
	values, err := t.input(in)
	if err != nil {
		return err
	}
	return s.addPartition(t, &partition{values: values, entry: partitionEntry(c, in, now())})
}

// input are the values of a partition's input, which is checked.
func (t *table) input(in object) ([]string, error) {
	if err := checkPartition(in); err != nil {
		return nil, err
	}
	values, err := texts(in.get("Values"))
	if err != nil {
		return nil, serialization(err)
	}
	return values, t.checkValues(values)
}

// partitionEntry is what a partition's input becomes.
func partitionEntry(c *Call, in object, created json.RawMessage) json.RawMessage {
	o := object{{"Values", in.get("Values")}, {"DatabaseName", quote(c.Database)}, {"TableName", quote(c.Table)}, {"CreationTime", created}}
	o.add(in)
	o.set("CatalogId", quote(c.Catalog))
	return o.raw()
}

func updatePartition(s *store, c *Call) (json.RawMessage, error) {
	in, err := c.entry("PartitionInput")
	if err != nil {
		return nil, err
	}
	old, t, err := s.partition(c, "PartitionValueList")
	if err != nil {
		return nil, err
	}
	values, err := t.input(in)
	if err != nil {
		return nil, err
	}
	if other := t.byValues[key(values)]; other != nil && other != old {
		return nil, exists("Partition already exists.")
	}
	raw, err := old.raw(true)
	if err != nil {
		return nil, err
	}
	before, err := parse(raw)
	if err != nil {
		return nil, err
	}
	delete(t.byValues, key(old.values))
	old.values, old.shape = values, nil
	created := before.get("CreationTime")
	if created == nil { // loaded without one
		created = now()
	}
	old.entry = partitionEntry(c, in, created)
	t.byValues[key(values)] = old
	return empty(), nil
}

func deletePartition(s *store, c *Call) (json.RawMessage, error) {
	p, t, err := s.partition(c, "PartitionValues")
	if err != nil {
		return nil, err
	}
	t.removePartition(p)
	return empty(), nil
}

func batchCreatePartition(s *store, c *Call) (json.RawMessage, error) {
	return s.batch(c, "PartitionInputList", 100, func(t *table, in object) error { return s.create(t, c, in) })
}

func batchDeletePartition(s *store, c *Call) (json.RawMessage, error) {
	return s.batch(c, "PartitionsToDelete", 25, func(t *table, in object) error {
		values, err := texts(in.get("Values"))
		if err != nil {
			return serialization(err)
		}
		p, err := t.partition(values)
		if err == nil {
			t.removePartition(p)
		}
		return err
	})
}

// batch does something for each item of a list. What an item fails of is told
// inside a good answer, and does not stop the others.
func (s *store) batch(c *Call, field string, limit int, do func(*table, object) error) (json.RawMessage, error) {
	items, err := c.list(field, limit)
	if err != nil {
		return nil, err
	}
	t, err := s.table(c.names())
	if err != nil {
		return nil, err
	}
	var failed []json.RawMessage
	for _, item := range items {
		if err := do(t, item); err != nil {
			failed = append(failed, itemError(item, err))
		}
	}
	if failed == nil {
		return empty(), nil
	}
	return object{{"Errors", list(failed)}}.raw(), nil
}

func batchGetPartition(s *store, c *Call) (json.RawMessage, error) {
	items, err := c.list("PartitionsToGet", partitionPage)
	if err != nil {
		return nil, err
	}
	t, err := s.table(c.names())
	if err != nil {
		return nil, err
	}
	var found, missing []json.RawMessage
	for _, item := range items {
		values, err := texts(item.get("Values"))
		if err != nil {
			return nil, serialization(err)
		}
		p, err := t.partition(values)
		if err != nil {
			missing = append(missing, item.raw())
			continue
		}
		entry, err := p.raw(false)
		if err != nil {
			return nil, err
		}
		found = append(found, entry)
	}
	out := object{{"Partitions", list(found)}}
	if missing != nil {
		out.set("UnprocessedKeys", list(missing))
	}
	return out.raw(), nil
}
