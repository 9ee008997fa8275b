// Package rules simulates stops, and compares rules for the end of a hold: fixed floors,
// silences, a floor and a silence, and silences that adapt to the traffic. The figures of
// docs/how-long.md come from here.
//
// A simulated stop is drawn from these distributions, all independent:
//
//   - Traffic comes at 0.1 to 500 requests a second, log-uniform, of five kinds in turn;
//     see allTraffic.
//   - A balancer lets go of the server 0.1 to 30 s after the trigger, log-uniform, in one
//     of three ways in turn: at once, one by one, with stragglers; see allBalancers.
//   - Service times are 20 ms, or heavy-tailed, in turn; see allServiceTimes.
//
// Time is a time.Duration from the trigger. The rules follow the hold of lameduck:
//
//   - Silence counts from the trigger at the earliest, and a request in flight is no
//     silence. Silence is noticed without delay: samples are exact.
//   - A rule knows only the requests since the trigger. lameduck does not look at traffic
//     before.
//   - A request is lost if the request arrives when the hold has ended. Requests in flight
//     at the end are not lost: the server is one that finishes them at its signal.
//   - A hold has no ceiling: the grace period is long enough.
//
// The seed and the number of a stop decide the stop, so that every rule meets the same
// stops, and a longer run begins with the stops of a shorter run.
package rules
