package traffic

import "github.com/lameduck-init/lameduck/shim/internal/tcp"

// staysIdle reports whether a connection is still idle that an earlier sample showed idle:
// the bytes moved since then are at most PINGs of the server and the client's ACKs. Such an
// ACK is received later than the PING was sent, and would look like a request. The bytes
// sent must not include bytes sent again.
//
// Bytes received and sent within one jiffy prove nothing: an earlier sample may have shown a
// waiting request as idle.
func staysIdle(info *tcp.Info, received, sent uint64) bool {
	return info.LastReceived < info.LastSent && received == sent && sent <= maxControlBytes
}

// awaitsPingACK reports whether the bytes moved since a sample that showed the connection
// idle may be a PING of the server whose ACK is to come. The caller of staysIdle then goes
// on to count from that sample.
func awaitsPingACK(received, sent uint64) bool {
	return received == 0 && sent > 0 && sent <= maxControlBytes
}
