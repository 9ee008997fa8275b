package shim

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/quote"
	"github.com/lameduck-init/lameduck/shim/internal/scope"
	"github.com/lameduck-init/lameduck/shim/internal/stderr"
)

// schema is the version of what is said in JSON. It changes where a name changes
// its meaning or goes; names may be added.
const schema = 1

// entry is a line in JSON; what is not known is null.
type entry struct {
	Schema  int       `json:"schema"`
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
	*figures
}

// figures are a report of a stop. Times are milliseconds, from the trigger where
// they are moments.
type figures struct {
	Trigger      string   `json:"trigger"` // a signal, or "hold"
	HeldMS       int64    `json:"held_ms"`
	Ended        *string  `json:"ended"`
	FloorMS      int64    `json:"floor_ms"`
	CeilingMS    int64    `json:"ceiling_ms"`
	Accepted     *int     `json:"accepted"`
	LastNewMS    *int64   `json:"last_new_ms"`
	LastByteMS   *int64   `json:"last_byte_ms"`
	Open         *int     `json:"open"`
	InFlight     *int     `json:"in_flight"`
	Sent         []posted `json:"sent"`
	ExitCode     *int     `json:"exit_code"`
	ExitSignal   *string  `json:"exit_signal"`
	GraceUsedMS  int64    `json:"grace_used_ms"`
	GraceAssumed bool     `json:"grace_assumed"`
	Observer     *string  `json:"observer"`
	Scope        *string  `json:"scope"`
	ProlongedBy  *string  `json:"prolonged_by"`
	Suggestion   *string  `json:"suggestion"`
}

// posted is a signal that was sent.
type posted struct {
	Signal string `json:"signal"`
	AtMS   int64  `json:"at_ms"`
}

// figures is the report as JSON has it.
func (d *drain) figures() *figures {
	gate := &d.plan.stop.Gate
	f := &figures{
		Trigger: d.trigger(), HeldMS: d.after(d.end()).Milliseconds(), Ended: known(string(d.Ended)),
		FloorMS: gate.Floor.Milliseconds(), CeilingMS: gate.MaxHold().Milliseconds(), Sent: []posted{},
		GraceUsedMS: d.after(d.now).Milliseconds(), GraceAssumed: d.plan.assumed,
		Observer: known(d.Observer), Suggestion: known(d.suggestion()),
	}
	for _, s := range d.Sent {
		f.Sent = append(f.Sent, posted{s.Signal.String(), d.after(s.At).Milliseconds()})
	}
	switch {
	case d.ExitedAt.IsZero():
	case d.Exit.Signal != 0:
		f.ExitSignal = known(d.Exit.Signal.String())
	default:
		f.ExitCode = &d.Exit.Code
	}
	if d.Observed() {
		d.watched(f)
	}
	return f
}

// watched adds what was seen of the traffic.
func (d *drain) watched(f *figures) {
	t := &d.Traffic
	busy, _ := d.busy()
	f.Accepted, f.Open, f.InFlight = &t.Accepted, &t.Open, &busy
	f.LastNewMS, f.LastByteMS = d.moment(t.LastNew), d.moment(t.LastByte)
	f.Scope, f.ProlongedBy = known(scopes[d.Listeners.Method]), known(d.prolonged())
}

// scopes are the words for how listeners are found.
var scopes = [...]string{scope.Given: "ports", scope.Cgroup: "cgroup", scope.Descriptors: "descriptors", scope.Namespace: "namespace"}

// moment is a time since the trigger, if it came after it.
func (d *drain) moment(at time.Time) *int64 {
	if !at.After(d.TriggeredAt) {
		return nil
	}
	ms := d.after(at).Milliseconds()
	return &ms
}

func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// jsonLine is a line in JSON. One that standard error would cut has less of the
// message.
func jsonLine(level, message string, f *figures) string {
	message = quote.Line(message) // as in text, for those who print the message alone
	for {
		line := encode(entry{schema, time.Now(), level, message, f})
		if len(line) < stderr.MaxLine || message == "" {
			return line
		}
		message = strings.ToValidUTF8(message[:len(message)/2], "")
	}
}

// encode is a value in JSON, on one line that can be printed.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return quote.Word(err.Error()) // no value of ours can fail
	}
	return quote.JSON(text)
}
