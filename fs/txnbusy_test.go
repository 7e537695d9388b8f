package fs

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestTransactionIsNobodysBesideItsCommit: who came first is waited for, for a while, and
// who comes later is refused.
func TestTransactionIsNobodysBesideItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const root = "db/t/.lakefs/txn/x"
		var all transactions
		leave, err := all.enter(root+"/a", "db/t/b", root+"/c")
		if err != nil {
			t.Fatal(err)
		}
		begun := make(chan bool)
		go func() { begun <- all.begin(root) }()
		synctest.Wait()
		if _, err = all.enter("db/t/b", root+"/d"); !errors.Is(err, errTransactionBusy) {
			t.Errorf("enter while a commit waits: %v", err)
		}
		if all.begin(root) {
			t.Error("a second commit began")
		}
		leave()
		if !<-begun {
			t.Error("the commit did not begin once all had left")
		}
		if _, err = all.enter(root); !errors.Is(err, errTransactionBusy) {
			t.Errorf("enter while it is committed: %v", err)
		}
		all.end(root)
		leave, err = all.enter(root + "/e")
		if err != nil {
			t.Errorf("enter after the commit: %v", err)
		}
		began := time.Now()
		if all.begin(root) || time.Since(began) != publishPatience {
			t.Errorf("a commit beside one who stays answered after %v", time.Since(began))
		}
		leave()
		if !all.begin(root) || len(all.users)+len(all.left) > 0 {
			t.Errorf("left: %v, %v", all.users, all.left)
		}
	})
}
