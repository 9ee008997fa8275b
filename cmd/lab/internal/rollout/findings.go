package rollout

import (
	"math"
	"slices"
	"time"

	"github.com/lameduck-init/lameduck/cmd/lab/load"
)

// findings are the results of the whole experiment.
type findings struct {
	Seed      uint64          `json:"seed"`
	Scale     scale           `json:"scale"`
	Rate      int             `json:"rate"`
	Repeat    int             `json:"repeat"`
	Seconds   float64         `json:"seconds"`
	Discarded int             `json:"discarded"` // rollouts played again, since the machine stood still
	Rollouts  int             `json:"rollouts"`
	LeftOut   int             `json:"left_out"` // rollouts in which the machine stood still at the last attempt too
	Lags      []string        `json:"lags"`
	Scenes    []*sceneFigures `json:"scenes"`
}

// sceneFigures are the results of one scene.
type sceneFigures struct {
	Scene      scene      `json:"scene"`
	Servers    []string   `json:"servers"`
	Contenders []*figures `json:"contenders"`
}

// figures are the results of one contender, over the servers of a scene and all lags. The
// times of stops leave out servers with long-lived connections, which last to the ceiling.
type figures struct {
	Name     string           `json:"name"`
	All      part             `json:"all"`
	ByLag    map[string]*part `json:"by_lag"`
	ByServer map[string]*part `json:"by_server"`
	RolloutS float64          `json:"rollout_s"` // median
	ExtraMS  float64          `json:"added_latency_p99_ms"`
	extras   []time.Duration
	rollouts []float64
}

// part sums up some of the stops.
type part struct {
	Stops    int               `json:"stops"`
	Losing   int               `json:"losing"` // stops with a failed request
	Requests int               `json:"requests"`
	Failed   int               `json:"failed"`
	Most     int               `json:"most"` // failed requests in one stop
	Kinds    map[load.Kind]int `json:"kinds,omitempty"`
	Ended    map[string]int    `json:"ended,omitempty"` // holds, by their ends in lameduck's report
	Lost     int               `json:"lost"`
	Killed   int               `json:"killed"`
	stopTimes
}

// stopTimes are the times from the stop signal to the exit, in milliseconds.
type stopTimes struct {
	MedianMS float64 `json:"stop_median_ms"`
	P95MS    float64 `json:"stop_p95_ms"`
	MaxMS    float64 `json:"stop_max_ms"`
	times    []float64
}

func summarize(o *options, trials []*trial) *findings {
	f := &findings{Seed: o.seed, Scale: o.scale, Rate: o.rate, Repeat: o.repeat}
	for _, l := range o.lags {
		f.Lags = append(f.Lags, l.name)
	}
	var sound []*trial
	for _, t := range trials {
		f.Rollouts++
		f.Discarded += t.Discarded
		if t.stalled(o.scale) {
			f.LeftOut++
			continue
		}
		sound = append(sound, t)
	}
	for _, name := range allScenes {
		if s := sceneOf(o, name, sound); len(s.Servers) > 0 && len(s.Contenders) > 0 {
			f.Scenes = append(f.Scenes, s)
		}
	}
	return f
}

func sceneOf(o *options, name scene, trials []*trial) *sceneFigures {
	f := &sceneFigures{Scene: name}
	for _, s := range o.servers {
		if s.scene == name {
			f.Servers = append(f.Servers, s.name)
		}
	}
	for _, c := range o.contenders {
		if c.plays(name) {
			f.Contenders = append(f.Contenders, figuresOf(c.name, name, trials))
		}
	}
	return f
}

func figuresOf(name string, in scene, trials []*trial) *figures {
	g := &figures{Name: name, ByLag: map[string]*part{}, ByServer: map[string]*part{}}
	for _, t := range trials {
		if t.Contender == name && t.server.scene == in {
			g.add(t)
		}
	}
	g.All.finish()
	for _, parts := range []map[string]*part{g.ByLag, g.ByServer} {
		for _, p := range parts {
			p.finish()
		}
	}
	g.RolloutS = quantile(g.rollouts, 0.5)
	slices.Sort(g.extras)
	if n := len(g.extras); n > 0 {
		g.ExtraMS = ms(g.extras[n*99/100])
	}
	return g
}

func (g *figures) add(t *trial) {
	for _, s := range t.Stops {
		timed := !t.server.longLived
		g.All.add(s, timed)
		partOf(g.ByLag, s.Name).add(s, timed)
		partOf(g.ByServer, t.Server).add(s, true)
		g.extras = append(g.extras, s.extras...)
	}
	if !t.server.longLived {
		g.rollouts = append(g.rollouts, t.RolloutS)
	}
}

func partOf(parts map[string]*part, name string) *part {
	if parts[name] == nil {
		parts[name] = &part{}
	}
	return parts[name]
}

func (p *part) add(s *stop, timed bool) {
	p.Stops++
	p.Requests += s.Requests
	failed := s.failed()
	p.Failed += failed
	p.Most = max(p.Most, failed)
	if failed > 0 {
		p.Losing++
	}
	p.Lost += s.Lost
	if p.Kinds == nil {
		p.Kinds, p.Ended = map[load.Kind]int{}, map[string]int{}
	}
	if s.Ended != "" {
		p.Ended[s.Ended]++
	}
	for k, n := range s.Failed {
		p.Kinds[k] += n
	}
	if s.Killed {
		p.Killed++
	}
	if timed {
		p.times = append(p.times, s.StopMS)
	}
}

func (p *part) finish() {
	p.MedianMS = quantile(p.times, 0.5)
	p.P95MS = quantile(p.times, 0.95)
	p.MaxMS = quantile(p.times, 1)
}

// quantile interpolates between neighboring values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	whole, part := math.Modf(q * float64(len(sorted)-1))
	low, high := sorted[int(whole)], sorted[min(int(whole)+1, len(sorted)-1)]
	return low + part*(high-low)
}
