package world

import (
	"time"

	"github.com/lameduck-init/lameduck/shim/internal/tcp"
)

// Kernel is the server's end of a connection in a simulated kernel, which assumes of both ends:
//
//   - The kernel keeps the times of bytes and ACKs in jiffies of 4 ms.
//   - An end acknowledges the first 16 segments at once, and again after 200 ms without one.
//   - In ping-pong mode, and then, the ACK waits 40 ms for bytes that can carry it. Bytes sent
//     within 40 ms of the last ones received begin the mode, and an ACK that goes alone ends it.
//
// See tcp_event_data_recv and tcp_send_delayed_ack in net/ipv4/tcp_input.c and tcp_output.c.
// TestPlays of package traffic holds these assumptions against a real kernel: the rows of
// package plays are played with both. Times are relative to Start.
type Kernel struct {
	tcp.Socket // all but the ages

	in, out time.Duration // when the last byte came and went
	acked   time.Duration // when the peer's last ACK came
	acks    time.Duration // when the next comes that is on the way
	server  end
	client  end
}

const (
	jiffy      = 4 * time.Millisecond
	delayedACK = 40 * time.Millisecond
	segment    = 1448 // bytes, at most
)

// end is what an end of a connection knows to decide about an ACK.
type end struct {
	received time.Duration // when bytes came last
	quick    int           // so many segments are acknowledged at once
	pingPong bool
	waits    bool // an ACK waits
}

// receive reports whether the end sends an ACK at once.
func (e *end) receive(at time.Duration) bool {
	if at-e.received > 200*time.Millisecond {
		e.quick = 16
	}
	e.received = at
	e.waits = e.pingPong || e.quick == 0
	if !e.waits {
		e.quick--
	}
	return !e.waits
}

// send sends bytes, which carry an ACK.
func (e *end) send(at time.Duration) {
	e.pingPong = e.pingPong || at-e.received < delayedACK
	e.waits = false
}

// delayed reports whether an ACK has waited in vain, and sends it.
func (e *end) delayed(now time.Duration) bool {
	if !e.waits || now < e.received+delayedACK {
		return false
	}
	e.waits, e.pingPong = false, false
	return true
}

// NewKernel returns the end of a connection whose handshake is over.
func NewKernel(s tcp.Socket, at time.Duration) Kernel {
	never := end{received: at - time.Hour}
	return Kernel{Socket: s, in: at, out: at, acked: at, acks: at, server: never, client: never}
}

// Receive receives bytes.
func (k *Kernel) Receive(at time.Duration, bytes int) {
	k.delayed(at)
	sent := at - k.Info.RTT/2
	k.client.send(sent)
	if k.out+k.Info.RTT/2 <= sent { // the bytes carry the ACK
		k.acks = at
	}
	if k.server.receive(at) {
		k.Info.PureACKs++
	}
	k.Info.Received += uint64(bytes)
	k.Info.Segments += uint32(bytes+segment-1) / segment
	k.in = at
}

// Send sends bytes.
func (k *Kernel) Send(at time.Duration, bytes int) {
	k.delayed(at)
	k.server.send(at)
	if k.client.receive(at + k.Info.RTT/2) {
		k.acks = at + k.Info.RTT
	}
	k.Info.Sent += uint64(bytes)
	k.Info.SentSegments += uint32(bytes+segment-1) / segment
	k.out = at
}

// delayed sends the ACKs that have waited in vain.
func (k *Kernel) delayed(now time.Duration) {
	if k.server.delayed(now) {
		k.Info.PureACKs++
	}
	if k.client.delayed(now) {
		k.acks = k.client.received + delayedACK + k.Info.RTT/2
	}
	if k.acks <= now {
		k.acked = max(k.acked, k.acks)
	}
}

// Show returns the socket as the kernel shows it.
func (k *Kernel) Show(now time.Duration) tcp.Socket {
	k.delayed(now)
	s := k.Socket
	if k.acked < k.out {
		s.Unsent = 1
	}
	age := func(at time.Duration) time.Duration { return (jiffies(now) - jiffies(at)) * jiffy }
	s.Info.LastReceived, s.Info.LastSent, s.Info.LastAcked = age(k.in), age(k.out), age(k.acked)
	s.Info.PingPong = k.server.pingPong
	return s
}

// jiffies returns a time in jiffies.
func jiffies(d time.Duration) time.Duration { return (d + time.Hour) / jiffy }
