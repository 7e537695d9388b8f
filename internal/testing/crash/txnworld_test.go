package crash_test

import (
	"bytes"
	"fmt"
	"maps"
	"path"
)

// transactionSizes are of the files that the world commits at once, t0.csv and so on.
func transactionSizes() []int { return []int{1, smallSize, 70_000, 300_000} }

func transactionFile(i int) string { return fmt.Sprintf("t%d.csv", i) }

// transact commits several files at once, and removes those that are there.
func (w *world) transact() error {
	for i := range transactionSizes() {
		name := transactionFile(i)
		w.mu.Lock()
		_, there := w.have[name]
		w.mu.Unlock()
		if there {
			return w.attempt(task{Do: "unlink", Path: w.at(name)}, map[string][]byte{name: nil})
		}
	}
	k := task{Do: "steps", Steps: []task{{Do: "mkdir", Path: w.rig.at(transaction)}, {Do: "mkdir", Path: w.rig.at(inTransaction)}}}
	before := len(k.Steps)
	written := tree{}
	for i, size := range transactionSizes() {
		name, id := transactionFile(i), w.fresh()
		written[name] = content(id, size)
		k.Steps = append(k.Steps, task{Do: "create", Path: w.rig.at(inTransaction + "/" + name), Name: id, Size: size, Sync: i%2 == 0})
	}
	k.Steps = append(k.Steps, task{Do: "tell", Path: w.rig.at(transaction + "/ctl"), Name: "commit\n"})
	w.mu.Lock()
	maps.Copy(w.maybe, written)
	w.mu.Unlock()
	o, err := w.agent.ask(k)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.txn, w.txnClosed = written, max(0, o.Done-before)
		return err
	}
	w.sum.acknowledged++
	for name, raw := range written {
		delete(w.maybe, name)
		w.have[name] = raw
	}
	return nil
}

// wantTransaction asserts that of the commit that was cut off all files are published, or
// none, and those that were closed are in the transaction then, which is ended.
func (w *world) wantTransaction(got tree) {
	w.t.Helper()
	left, err := w.agent.ask(task{Do: "walk", Path: path.Dir(w.rig.at(transaction))})
	if err != nil {
		w.t.Errorf("walk the transactions: %v", err)
		return
	}
	published := 0
	for name, raw := range w.txn {
		if bytes.Equal(got[name], raw) {
			published++
		}
	}
	switch {
	case published > 0 && published < len(w.txn):
		w.t.Errorf("of a transaction of %d files %d are published; in it are %v", len(w.txn), published, left.Files)
	case published > 0 || w.txn == nil:
		if len(left.Files) > 0 {
			w.t.Errorf("a transaction is over, and in it are %v", left.Files)
		}
	default:
		for i := range w.txnClosed {
			name := transactionFile(i)
			if have, want := left.Files["load/"+path.Base(worldPart)+"/"+name], brief(w.txn[name]); have != want {
				w.t.Errorf("%s was closed in a transaction and is %q in it, want %s", name, have, want)
			}
		}
	}
	w.endTransaction(len(left.Files) > 0)
	w.txn, w.txnClosed = nil, 0
}

// endTransaction drops the transaction, if there is one: by rm -r, or by abort.
func (w *world) endTransaction(must bool) {
	w.t.Helper()
	if w.dice.IntN(2) == 0 {
		if err := w.agent.do(task{Do: "remove all", Path: w.rig.at(transaction)}); err != nil {
			w.t.Errorf("rm -r of a transaction: %v", err)
		}
		return
	}
	err := w.agent.do(task{Do: "tell", Path: w.rig.at(transaction + "/ctl"), Name: "abort\n"})
	if err != nil && must {
		w.t.Errorf("abort: %v", err)
	}
}
