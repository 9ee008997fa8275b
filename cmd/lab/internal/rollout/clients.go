package rollout

import (
	"math/rand/v2"
	"time"
)

// clients are the clients of a server. The zero value has clients that come at even gaps,
// with a GET and a new connection each.
type clients struct {
	keepAlive  bool          // clients and balancer use connections again
	longLived  bool          // a connection lasts: WebSockets
	conns      int           // so many connections that are used in turn and never let go
	post       bool          // requests are POSTs, which no client repeats
	probed     bool          // a readiness probe comes as well
	stragglers bool          // a few clients are moved late
	min, max   time.Duration // how long a request takes
	rate       float64       // as a multiple of -rate; 0: 1
	gap        func(r *rand.Rand, mean time.Duration) time.Duration
}

// think returns the thinking time of the next request.
func (c *clients) think(r *rand.Rand, by scale) time.Duration {
	return by.of(c.min + time.Duration(r.Float64()*float64(c.max-c.min)))
}

// pause returns the time from one planned request to the next. rate is that of the command
// line. Times of sparse traffic are compared with silences, and so compressed as these are.
func (c *clients) pause(r *rand.Rand, rate int, by scale) time.Duration {
	mean := time.Second / time.Duration(rate)
	if c.rate > 0 {
		mean = time.Duration(float64(mean) / c.rate)
	}
	if c.rate > 0 && c.rate < 1 {
		mean = by.of(mean)
	}
	if c.gap == nil {
		return mean
	}
	return c.gap(r, mean)
}

// exponential draws the gaps of many independent clients, a Poisson process.
func exponential(r *rand.Rand, mean time.Duration) time.Duration {
	return time.Duration(r.ExpFloat64() * float64(mean))
}

// A visit is a burst of requests, like the page and the pictures of a web site.
const (
	visitSize  = 10  // mean number of requests
	visitShare = 0.2 // a gap within a visit, as a share of the mean gap
)

// visits draws the gaps of visits one after the other: short within a visit, and long
// between two visits.
func visits(r *rand.Rand, mean time.Duration) time.Duration {
	const between = visitSize - (visitSize-1)*visitShare
	if r.Float64() < 1.0/visitSize {
		return exponential(r, time.Duration(between*float64(mean)))
	}
	return exponential(r, time.Duration(visitShare*float64(mean)))
}
