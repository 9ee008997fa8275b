package truth

import _ "embed"

//go:embed server_node.js
var nodeProgram string

// Node with server.close at TERM.
var (
	node    = nodeServer("http")
	nodeTLS = nodeServer("https")
	nodeH2  = nodeServer("h2") // over TLS
)

func nodeServer(kind string) *server {
	command := scripted("server.js", nodeProgram, "node", "DIR/server.js", "PORT", kind, "DIR/cert.pem")
	return &server{needs: []string{"node"}, tls: kind != "http", command: withCertificate(command)}
}
