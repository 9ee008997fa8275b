// Demo shows one stop of a server as four contenders play the stop, side by side, and
// draws the pictures of the pages: docs/demo.svg and docs/stop.svg.
//
// Every contender has a balancer and two replicas, as in a rollout:
//
//	open-loop load --> balancer --> old replica: contender, server
//	                       |------> new replica: server
//
// The old replica is stopped. The balancer learns of the stop later, and sends requests to
// the old replica until then. Requests are sent at planned times whatever becomes of
// earlier requests, and neither the balancer nor the client retries.
//
// A symbol stands for the requests that were planned in a quarter of a second, so that
// the requests of a row are the symbols times 25. A row ends two symbols after the old
// replica is gone and removed from the balancer. If the machine stands still while the
// contenders play, all contenders play again and nothing is shown.
//
// The program is apart from the other programs of the laboratory, and does without
// net/http, so that the compiler takes less time: TLS takes longer to compile than the
// demo to play.
package main
