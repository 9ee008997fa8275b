package stage

import (
	"context"
	"sync"
	"time"
)

// Beside does jobs, so many at a time, and returns when all have ended. It begins no more when ctx
// has ended, and none sooner than stagger after another, since trials are busy at their beginning,
// and would stay in step.
func Beside[J any](ctx context.Context, jobs []J, atATime int, stagger time.Duration, do func(J)) {
	places := make(chan bool, atATime)
	var all sync.WaitGroup
	defer all.Wait()
	for _, job := range jobs {
		places <- true
		if ctx.Err() != nil {
			return
		}
		all.Go(func() {
			do(job)
			<-places
		})
		time.Sleep(stagger)
	}
}
