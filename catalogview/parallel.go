package catalogview

import "sync"

// parallel is how many requests one listing of tables has under way.
const parallel = 16

// inParallel calls f for each i below n, some at a time, and waits for all.
func inParallel(n int, f func(i int)) {
	var g sync.WaitGroup
	free := make(chan struct{}, parallel)
	for i := range n {
		free <- struct{}{}
		g.Go(func() {
			defer func() { <-free }()
			f(i)
		})
	}
	g.Wait()
}
