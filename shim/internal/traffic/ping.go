package traffic

import "github.com/lameduck-init/lameduck/shim/internal/tcp"

// maxControlBytes limits what two ends of HTTP/2 tell each other beside requests and
// responses: a PING and its ACK, of 17 bytes each, or 39 and 46 over TLS.
const maxControlBytes = 64

// keepsState reports whether the bytes moved since a judgment are PINGs and their ACKs at
// most, so that the state stays. The bytes sent do not include bytes sent again.
//
// The client's ACK of a PING is received later than the PING was sent, and would look like
// a request on an idle connection. Bytes received and sent within one jiffy prove nothing:
// the judgment may have taken a waiting request for answered.
func (j *judgment) keepsState(info *tcp.Info, received, sent uint64) bool {
	switch {
	case received != sent || sent > maxControlBytes:
		return false
	case j.request == Idle:
		return info.LastReceived < info.LastSent
	}
	return j.request == InFlight || sent > 0
}

// halfPING reports whether the bytes moved since a judgment may be a PING whose ACK is to
// come: a PING of the client during a request, or of the server on an idle connection.
func halfPING(before, now RequestState, received, sent uint64) bool {
	switch {
	case before == InFlight:
		return sent == 0 && 0 < received && received <= maxControlBytes
	case before == Idle && now == Idle:
		return received == 0 && 0 < sent && sent <= maxControlBytes
	}
	return false
}
