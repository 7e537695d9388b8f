package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// pendingWork is what the mount's status tells of work that somebody has to finish.
type pendingWork struct {
	// Transactions are open: their files are staged until a commit.
	Transactions []pendingTransaction `json:"transactions"`
	// Unregistered are partitions with files that the catalog did not take.
	Unregistered []struct {
		Path   string `json:"path"`
		Reason string `json:"reason"`
	} `json:"unregistered"`
}

// pendingTransaction is one of a mount.
type pendingTransaction struct {
	Path       string    `json:"path"`
	Files      int       `json:"files"`
	Bytes      int64     `json:"bytes"`
	Created    time.Time `json:"created"` // of the first file
	Committing bool      `json:"committing"`
	Half       bool      `json:"half_published"` // an overwrite published a part
}

// transactionsOf asks a mount for its own; none if it does not tell.
func transactionsOf(ctx context.Context, path string) []pendingTransaction {
	var pending pendingWork
	raw, err := readControl(ctx, path, "status.json")
	if err != nil || json.Unmarshal(raw, &pending) != nil {
		return nil
	}
	return pending.Transactions
}

// pending is what the mount tells of it.
func (s mountStatus) pending() (p pendingWork) {
	if len(s.Status) == 0 || json.Unmarshal(s.Status, &p) != nil {
		return pendingWork{}
	}
	return p
}

// printPending prints the open transactions and the unregistered partitions of a mount.
func (p *program) printPending(s mountStatus) error {
	pending := s.pending()
	on := p.paint()
	var transactions, partitions textTable
	if open := pending.Transactions; len(open) > 0 {
		row := transactions.row
		row(fmt.Sprintf("\nOpen transactions in %s:", quoted(s.MountPoint)))
		transactions.heading(on, "PATH", "FILES", "SIZE", "AGE", "STATE")
		for _, t := range open[:min(len(open), shownMax)] {
			state, age := "open", "-" // it has no file
			if !t.Created.IsZero() {
				age = time.Since(t.Created).Truncate(time.Second).String()
			}
			switch {
			case t.Committing:
				state = "committing"
			case t.Half:
				state = "half published: commit the rest"
			}
			row(quoted(t.Path), fmt.Sprint(t.Files), sizeText(t.Bytes), age, state)
		}
		moreRows(row, len(open))
	}
	if left := pending.Unregistered; len(left) > 0 {
		row := partitions.row
		row(fmt.Sprintf("\nNot in the catalog of %s (it is tried again; at once by lakefs-mount repair TABLE):", quoted(s.MountPoint)))
		partitions.heading(on, "PARTITION", "REASON")
		for _, u := range left[:min(len(left), shownMax)] {
			row(quoted(u.Path), printable(u.Reason))
		}
		moreRows(row, len(left))
	}
	return errors.Join(transactions.write(p.stdout), partitions.write(p.stdout))
}

func moreRows(row func(...string), n int) {
	if n > shownMax {
		row(fmt.Sprintf("and %d more: --json lists them", n-shownMax))
	}
}
