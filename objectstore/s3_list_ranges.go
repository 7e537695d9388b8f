package objectstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of a listing.
const (
	// manyPages is how many full pages make a listing a large one. Up to there the
	// key ranges may cost one request more, and another one for each ten pages.
	manyPages = 20
	// maxRanges is how many pages of a large listing are on their way at once.
	maxRanges = 12
	// rangePages is how many pages the range is to hold that is split off.
	rangePages      = 8
	smallRangePages = 4 // while the listing is no large one
	// pagesAhead is how many pages lie ready or are on their way, the next one not
	// counted: some 18 MiB of entries. Each range holds on to one page more.
	pagesAhead = 80
	// slowPage is how many times the fastest page's time one may take until fewer are
	// asked for at once: a store that has no more to give only queues them.
	slowPage = 3
	// pollEntries is after how many entries it is looked whether a page has come.
	pollEntries = 100
)

// s3Lister is one run of List. It lists pages one after another, the next while one is
// yielded; from its third page on, the keys that are still to come are cut into ranges
// at keys that are guessed by those that came (see splitAt), and a page of each is on its
// way at once. Each key belongs to one range by its order alone, whatever a store makes
// of StartAfter; a guess that is far off costs one request. Stores whose keys are in no
// order, or that ignore StartAfter, are listed page by page.
//
// All state is run's goroutine's; the others fetch one page each and send it to arrived.
type s3Lister struct {
	s3       *S3
	prefix   Location
	opts     ListOptions
	yield    func(Entry, error) bool
	pageSize int32

	count    int         // entries yielded
	ranges   []*keyRange // in the order of their keys, without gaps; the first is being yielded
	arrived  chan arrival
	fetchers sync.WaitGroup

	got     int  // entries that came
	splits  int  // ranges that were split off
	missed  int  // of them, those in which nothing lay
	serial  bool // no more are
	passed  bool // the end of a range was passed, or keys behind it were dropped
	flying  int  // pages on their way
	waiting int  // pages that lie ready
	lanes   int  // how many pages may be on their way
	fastest time.Duration
}

// keyRange is the part of a listing with the keys after lo, up to and with hi.
type keyRange struct {
	lo, hi string // "": none
	token  string // of the next page
	tokens map[string]bool
	pages  [][]Entry // ready
	behind []Entry   // of its last page, past hi: for join. Who comes before a range that has not begun stays
	recent []Entry   // the last page that had entries: how keys lie here
	last   string    // key that came
	begun  bool      // a page came
	flying bool      // one is on its way
	done   bool      // none is to come
	gone   bool      // its keys are another range's again
}

// arrival is a page of a range.
type arrival struct {
	r    *keyRange
	page listPage
}

func newLister(s *S3, prefix Location, opts ListOptions, yield func(Entry, error) bool) *s3Lister {
	l := &s3Lister{
		s3: s, prefix: prefix, opts: opts, yield: yield, pageSize: maxListPage, lanes: 2,
		arrived: make(chan arrival, 2*maxRanges), serial: opts.Limit > 0 || s.unordered(prefix.Bucket),
	}
	if s.listPage > 0 {
		l.pageSize = s.listPage
	}
	l.ranges = []*keyRange{{lo: opts.StartAfter, tokens: map[string]bool{}}}
	return l
}

// unordered says that listings of a bucket are not to be split: a directory bucket's
// have no order.
func (s *S3) unordered(bucket string) bool {
	_, found := s.serial.Load(bucket)
	return found || strings.HasSuffix(bucket, "--x-s3")
}

// run yields page after page, and returns the error that ended it.
func (l *s3Lister) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer l.fetchers.Wait()
	defer cancel()
	for len(l.ranges) > 0 {
		l.launch(ctx)
		r := l.ranges[0]
		switch {
		case len(r.pages) > 0:
			page := r.pages[0]
			r.pages = r.pages[1:]
			l.waiting--
			if goOn, err := l.emit(ctx, page); !goOn {
				return err
			}
		case r.done && (len(l.ranges) == 1 || l.ranges[1].begun):
			l.passed = l.passed || len(l.ranges) > 1
			l.ranges = l.ranges[1:]
		case r.done && !l.ranges[1].flying:
			l.send(ctx, l.ranges[1])
		default:
			if err := l.accept(<-l.arrived); err != nil {
				return err
			}
		}
	}
	return nil
}

// enough: so many more entries are all that was asked for.
func (l *s3Lister) enough(more int) bool { return l.opts.Limit > 0 && l.count+more >= l.opts.Limit }

// emit yields entries; false: no more are wanted, or an error came meanwhile.
func (l *s3Lister) emit(ctx context.Context, entries []Entry) (goOn bool, err error) {
	for i, e := range entries {
		if i%pollEntries == pollEntries-1 && l.opts.Limit == 0 {
			if err := l.poll(ctx); err != nil {
				return false, err
			}
		}
		l.count++
		if !l.yield(e, nil) || l.enough(0) {
			return false, nil
		}
	}
	return true, nil
}

// poll takes the pages that have come, and asks for more.
func (l *s3Lister) poll(ctx context.Context) error {
	for {
		select {
		case a := <-l.arrived:
			if err := l.accept(a); err != nil {
				return err
			}
		default:
			l.launch(ctx)
			return nil
		}
	}
}

// launch sends for the pages that may be on their way now: the first range's next one
// when the caller waits for it, then those of the ranges in their order, then that of
// a new range.
func (l *s3Lister) launch(ctx context.Context) {
	for more := true; more; more = l.room() && l.mayCost() && l.split() {
		for i, r := range l.ranges {
			if r.done || r.flying || l.enough(entriesOf(r.pages)) {
				continue
			}
			if waited := i == 0 && len(r.pages) == 0; waited || l.room() {
				l.send(ctx, r)
			}
		}
	}
}

// room says that one page more may be on its way. Who has read little is not read
// far ahead for.
func (l *s3Lister) room() bool {
	return l.flying < l.lanes && l.flying+l.waiting < min(pagesAhead, 2+2*l.count/int(l.pageSize))
}

func entriesOf(pages [][]Entry) (n int) {
	for _, p := range pages {
		n += len(p)
	}
	return n
}

func (l *s3Lister) send(ctx context.Context, r *keyRange) {
	r.flying = true
	l.flying++
	after, token := r.lo, r.token
	l.fetchers.Go(func() { l.arrived <- arrival{r, l.fetch(ctx, after, token)} })
}

// mayCost says that another range may be split off. Each costs one request at most,
// beyond the pages that are to be listed in any case: its own end's, or its own where
// nothing lies in it.
func (l *s3Lister) mayCost() bool {
	pages := l.got / int(l.pageSize)
	switch {
	case l.serial || pages < 2:
		return false
	case pages < manyPages:
		return l.splits < 1+pages/10
	}
	return l.splits < maxRanges+pages/5
}

// split cuts the first range that is likely to hold more than a new one would, where
// that begins. Ranges that are guesses
// alone are half as many as the others at most, and fewer after each that was empty.
func (l *s3Lister) split() bool {
	size, guesses := rangePages, 0
	if l.got < manyPages*int(l.pageSize) {
		size = smallRangePages
	}
	for _, r := range l.ranges {
		switch {
		case r.done:
		case r.begun:
			guesses--
		default:
			guesses += 2 + 4*l.missed
		}
	}
	for i, r := range l.ranges {
		if r.done || guesses > 0 {
			continue
		}
		at, ok := splitAt(r.recent, max(r.lo, r.last), r.hi, len(l.prefix.Key), size*int(l.pageSize))
		if !ok {
			continue
		}
		upper := &keyRange{lo: at, hi: r.hi, tokens: map[string]bool{}, recent: r.recent}
		r.hi = at
		l.ranges = slices.Insert(l.ranges, i+1, upper)
		l.splits++
		return true
	}
	return false
}

// accept takes a page.
func (l *s3Lister) accept(a arrival) error {
	r, page := a.r, a.page
	l.flying--
	r.flying = false
	if r.gone {
		return nil
	}
	if page.err != nil {
		return l.failed(r, page.err)
	}
	l.pace(page)
	if err := l.check(r, page); err != nil || r.gone {
		return err
	}
	if !r.begun && len(page.entries) == 0 && page.next == "" {
		l.missed++
	}
	if page.next != "" && r.tokens[page.next] {
		return l.fail("the store goes round in circles: a continuation token came twice")
	}
	r.begun, r.tokens[page.next], r.token = true, true, page.next
	l.take(r, page.entries)
	r.done = r.done || page.next == ""
	return nil
}

func (l *s3Lister) fail(text string) error {
	return failS3("list", l.prefix, &storeError{sentinel: ErrUnavailable, text: text})
}

// pace has more pages on their way while that makes none of them slow, and fewer when
// it does, or when the store does not answer at once.
func (l *s3Lister) pace(page listPage) {
	if l.fastest == 0 || page.took < l.fastest {
		l.fastest = page.took
	}
	switch {
	case page.again:
		l.lanes = max(1, l.lanes/2)
	case page.took > slowPage*l.fastest:
		l.lanes = max(2, l.lanes-1)
	default:
		l.lanes = min(l.lanes+1, maxRanges)
	}
}

// failed decides what becomes of a page that did not come. A store that cannot begin
// a listing at a key says so of a new range; then the one before it goes on, and meets
// every other failure by itself.
func (l *s3Lister) failed(r *keyRange, err error) error {
	i := slices.Index(l.ranges, r)
	if r.begun || i == 0 {
		return err
	}
	l.serial = true
	if !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrPermission) {
		l.s3.serial.Store(l.prefix.Bucket, true)
	}
	l.join(i - 1)
	return nil
}

// check looks whether a page keeps the order that ranges rely on. Where it does not,
// the listing goes on page by page, unless a range has ended: keys may have been behind
// its end by their bytes alone then.
func (l *s3Lister) check(r *keyRange, page listPage) error {
	ordered := page.ordered && (len(page.entries) == 0 || page.entries[0].Key >= r.last)
	i := slices.Index(l.ranges, r)
	ignored := page.before && !r.begun && i > 0 // StartAfter was
	if ordered && !ignored {
		return nil
	}
	l.s3.serial.Store(l.prefix.Bucket, true)
	l.serial = true
	switch {
	case !ordered && l.passed:
		return l.fail("keys came in no order, after others had")
	case !ordered:
		l.join(0)
	default:
		l.join(i - 1)
	}
	return nil
}

// join makes the ranges behind the i-th a part of it again.
func (l *s3Lister) join(i int) {
	for _, r := range l.ranges[i+1:] {
		r.gone = true
		l.waiting -= len(r.pages)
		l.got -= entriesOf(r.pages)
	}
	l.ranges = l.ranges[:i+1]
	r := l.ranges[i]
	behind := r.behind
	if r.hi, r.behind = "", nil; behind != nil {
		r.done = r.token == ""
		l.take(r, behind)
	}
}

// take keeps the entries of a page that are the range's.
func (l *s3Lister) take(r *keyRange, entries []Entry) {
	if len(entries) > 0 && entries[0].Key == r.last { // on two pages
		entries = entries[1:]
	}
	if r.hi != "" {
		for i := range entries {
			if entries[i].Key > r.hi {
				entries, r.behind, r.done, l.passed = entries[:i], entries[i:], true, true
				break
			}
		}
	}
	if len(entries) == 0 {
		return
	}
	l.got += len(entries)
	r.last, r.recent = entries[len(entries)-1].Key, entries
	r.pages = append(r.pages, entries)
	l.waiting++
}
