package main

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

const (
	topEvery = 2 * time.Second // between two looks, where nothing else is asked for
	// topSlow is how long a mount may take to answer before the screen says so.
	topSlow = 2 * time.Second
	// topPast is how many rates are remembered: more than a line has room for.
	topPast = 240
)

// topSteps are the times between two looks that + and - lead through.
func topSteps() []time.Duration {
	return []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute}
}

// topMount is one mount as top has seen it so far.
type topMount struct {
	entry         tableEntry
	last          *look // nil: none since it is shown
	report        topReport
	read, written []float64
	asked         time.Time // when it was asked for what it has not answered; zero: it is not being asked
}

// topModel is the live view. It is changed by Update alone, which never waits: lookAt
// runs aside, and no mount is asked again before it has answered.
type topModel struct {
	lookAt func(tableEntry) (look, error)
	mounts []*topMount
	shown  int
	state  topState
	turn   int // of the looks: a tick of an earlier turn is stale
	err    error
}

// Messages to Update.
type (
	topLooked struct { // a mount has answered, or cannot
		mount *topMount
		look  look
		err   error
	}
	topTick  struct{ turn int } // it is time for another look
	topClock struct{}           // a look may take too long
)

// Init waits for the next look: each mount has been looked at once.
func (m *topModel) Init() tea.Cmd { return tea.Batch(m.tick(), topClockTick()) }

func topClockTick() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return topClock{} })
}

// look asks the mount that is shown, if it is not being asked.
func (m *topModel) look() tea.Cmd {
	m.turn++
	at := m.mounts[m.shown]
	if !at.asked.IsZero() {
		return nil
	}
	at.asked = time.Now()
	return func() tea.Msg {
		l, err := m.lookAt(at.entry)
		return topLooked{at, l, err}
	}
}

func (m *topModel) tick() tea.Cmd {
	turn := m.turn
	return tea.Tick(m.state.every, func(time.Time) tea.Msg { return topTick{turn} })
}

func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.state.width, m.state.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case topClock:
		return m, topClockTick() // View reads the clock
	case topTick:
		if msg.turn == m.turn && !m.state.paused {
			return m, m.look()
		}
	case topLooked:
		return m, m.looked(msg)
	}
	return m, nil
}

// looked takes an answer. That of a mount which is not shown any more is dropped.
func (m *topModel) looked(msg topLooked) tea.Cmd {
	at := msg.mount
	at.asked = time.Time{}
	switch {
	case at != m.mounts[m.shown]:
		return nil
	case msg.err != nil:
		m.err = msg.err
		return tea.Quit
	case at.last == nil:
		at.report = report(at.entry, msg.look, msg.look)
	default:
		at.report = report(at.entry, *at.last, msg.look)
		at.read = append(at.read, at.report.Read)
		at.written = append(at.written, at.report.Written)
		at.read = at.read[max(len(at.read)-topPast, 0):]
		at.written = at.written[max(len(at.written)-topPast, 0):]
	}
	at.last = &msg.look
	return m.tick()
}

func (m *topModel) key(key string) tea.Cmd {
	switch key {
	case "q", "Q", "ctrl+c", "esc":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "p", "space":
		m.state.paused = !m.state.paused
		if !m.state.paused {
			return m.look()
		}
	case "+", "=":
		return m.step(1)
	case "-":
		return m.step(-1)
	case "tab", "right", "n":
		return m.show(1)
	case "shift+tab", "left":
		return m.show(-1)
	}
	return nil
}

// step makes the time between two looks longer or shorter.
func (m *topModel) step(by int) tea.Cmd {
	steps := topSteps()
	at, exact := slices.BinarySearch(steps, m.state.every)
	if !exact && by > 0 {
		by-- // at is the next longer one already
	}
	m.state.every = steps[min(max(at+by, 0), len(steps)-1)]
	if m.state.paused {
		return nil
	}
	m.turn++
	return m.tick()
}

// show turns to another mount; what it did while nobody looked is no rate.
func (m *topModel) show(by int) tea.Cmd {
	if len(m.mounts) == 1 {
		return nil
	}
	m.shown = (m.shown + by + len(m.mounts)) % len(m.mounts)
	m.mounts[m.shown].last = nil
	return m.look()
}

func (m *topModel) View() tea.View {
	at, s := m.mounts[m.shown], m.state
	s.live, s.mount, s.mounts, s.read, s.written = true, m.shown+1, len(m.mounts), at.read, at.written
	if !at.asked.IsZero() {
		if s.waiting = time.Since(at.asked); s.waiting < topSlow {
			s.waiting = 0
		}
	}
	r := at.report
	r.MountPoint, r.Source = at.entry.path, at.entry.source
	v := tea.NewView(topScreen(r, s))
	v.AltScreen = true
	return v
}
