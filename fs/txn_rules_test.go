package fs_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// The rules of write.md that have no test elsewhere, by their numbers.

// TestRule23_AFileTakesItsNameAtTheCommit: until then the store has nothing of it, and it
// is found under a hidden name of its own.
func TestRule23_AFileTakesItsNameAtTheCommit(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`exec 3>db/t/k=1/new; echo 1 >&3
		id=$(cd db/t/k=1; jq -r '.staged[0].write_id' .lakefs/status.json)
		test "$(cat db/t/k=1/_temporary/.tmp.$id)" = 1; test "$(ls db/t/k=1)" = old`)
	// The shell's end published it; what a program has open yet is not.
	wantStored(t, l, "k=1/new", "k=1/old")
	f, err := os.Create(l.Path("db/t/k=1/open"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("2\n"); err != nil {
		t.Error(err)
	}
	wantStored(t, l, "k=1/new", "k=1/old")
	wantNames(t, l, "db/t/k=1", "new", "old")
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	wantStored(t, l, "k=1/new", "k=1/old", "k=1/open")
}

// TestRule24_OthersStagingTreesStay whatever is overwritten or removed beside them.
func TestRule24_OthersStagingTreesStay(t *testing.T) {
	t.Parallel()
	theirs := []string{"_temporary/0/task/f", "k=1/_temporary/.tmp.theirs"}
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n", theirs[0]: "theirs\n", theirs[1]: "theirs\n"}, "--write=delete")
	l.MustSh(`mkdir ` + txn + `; cd ` + txn + `; mkdir k=2; echo 1 >k=2/f; echo 'overwrite *' >ctl`)
	wantStored(t, l, append(slices.Clone(theirs), "k=2/f")...)
	l.MustSh(`cd db/t; rm -r k=2; ! rm -r _temporary 2>/dev/null; rm -rf k=1 2>/dev/null; true`)
	wantStored(t, l, theirs...)
}

// TestRule25_ACommitPublishesItsOwn: two transactions with files of the same names have
// staged files of their own, and a commit takes none of the other's.
func TestRule25_ACommitPublishesItsOwn(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`cd db/t/.lakefs/txn; mkdir a b; mkdir a/k=1 b/k=1; echo a >a/k=1/f; echo b >b/k=1/f; echo b >b/k=1/g; echo commit >a/ctl`)
	wantStored(t, l, "k=1/f", "k=1/old")
	wantContent(t, l, "db/t/k=1/f", "a\n")
	wantNames(t, l, "db/t/.lakefs/txn/b/k=1", "f", "g")
	l.MustSh(`cd db/t/.lakefs/txn; rm b/k=1/f; echo commit >b/ctl`)
	wantStored(t, l, "k=1/f", "k=1/g", "k=1/old")
	wantContent(t, l, "db/t/k=1/f", "a\n")
}

// TestRule31_AnOverwriteLeavesDirectories, and staging trees.
func TestRule31_AnOverwriteLeavesDirectories(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n", "k=1/sub/old": "old\n", "k=1/_temporary/0/theirs": "theirs\n"}, "--write=delete")
	l.MustSh(`mkdir db/t/_temporary; echo mine >db/t/_temporary/mine; mkdir ` + txn + `; echo 'overwrite k=1' >` + txn + `/ctl`)
	wantStored(t, l, "k=1/_temporary/0/theirs")
	wantNames(t, l, "db/t", "k=1")
	wantNames(t, l, "db/t/k=1", "sub")
	wantContent(t, l, "db/t/_temporary/mine", "mine\n")
}

// TestRule32_AppendsRace: commits into one partition at once publish all of each.
func TestRule32_AppendsRace(t *testing.T) {
	t.Parallel()
	l := mountPartitioned(t, map[string]string{"k=1/old": "old\n"})
	l.MustSh(`cd db/t/.lakefs/txn; for i in 1 2 3 4; do mkdir $i $i/k=1 $i/k=2; for j in 1 2 3 4 5; do echo $i >$i/k=1/f$i.$j; echo $i >$i/k=2/f$i.$j; done; done
		for i in 1 2 3 4; do echo commit >$i/ctl & done; wait`)
	want := []string{"k=1/old"}
	for i := 1; i <= 4; i++ {
		for j := 1; j <= 5; j++ {
			want = append(want, fmt.Sprintf("k=1/f%d.%d", i, j), fmt.Sprintf("k=2/f%d.%d", i, j))
		}
	}
	wantStored(t, l, want...)
	wantNames(t, l, "db/t/.lakefs/txn")
}
