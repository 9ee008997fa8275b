package systems

import "fmt"

// judge compares the results with the variant's expectations.
func (r *row) judge() {
	v, o := r.variant, &r.outcome
	r.want(o.ended, "the kernel does not say that PID 1 ended")
	r.want(!o.ended || o.exit == v.exit, "PID 1 exited with %d, want %d", o.exit, v.exit)
	if v.command != "serve" {
		return
	}
	r.want(r.status.HUPs == 1, "the server received %d HUP, want 1", r.status.HUPs)
	r.want(r.status.Orphans == 0, "%d orphans are left", r.status.Orphans)
	r.want(o.report.Ended == v.ended, "the hold ended by %q, want %q", o.report.Ended, v.ended)
	r.want(o.report.Observer == v.observer, "the observer was %q, want %q", o.report.Observer, v.observer)
	if v.loses {
		r.want(r.lost > 0, "none of %d requests lost without a hold: the load proves nothing", r.sent)
		return
	}
	r.want(r.lost == 0, "%d of %d requests lost", r.lost, r.sent)
	r.want(r.sent > 0, "no requests sent")
	r.want(!v.inFlight || r.slow == answered, "the request in flight: %s", r.slow)
	r.want(v.ended != "quiet" || o.report.LastNew != nil, "the report has no new connection after TERM")
}

func (r *row) want(ok bool, format string, args ...any) {
	if !ok {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}
