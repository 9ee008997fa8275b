package check

import (
	"fmt"
	"net/netip"
	"strings"
)

// Request is an HTTP request, as --on-stop and --wait-url have it.
type Request struct {
	Method string
	URL    string // as given
	Host   string // as in the URL
	Path   string // with the query; of a Unix socket, after the path of the socket
	Unix   bool
	target netip.AddrPort // without an address: loopback
}

// capitals are the letters of methods.
const capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// IsRequest reports whether a text is meant for ParseRequest. A program before a URL, such as curl, makes
// a command.
func IsRequest(text string) bool {
	method, url := cutMethod(text)
	isUsual := strings.Contains(" get post put patch delete ", " "+strings.ToLower(method)+" ")
	isMethod := isUsual || method != "" && strings.Trim(method, capitals) == ""
	scheme, _, found := strings.Cut(url, ":")
	return found && isMethod && (scheme == "http" || scheme == "https" || scheme == "unix")
}

// cutMethod cuts a text into a method, POST without one, and a URL.
func cutMethod(text string) (method, url string) {
	method, url, _ = strings.Cut(text, " ")
	if strings.Contains(method, ":") {
		return "POST", text
	}
	return method, strings.TrimLeft(url, " ")
}

// ParseRequest parses a URL, which is sent a POST, or a method in capitals and a URL. The host is a
// numeric address or localhost, since nothing resolves names.
func ParseRequest(text string) (*Request, error) {
	method, url := cutMethod(text)
	r := &Request{Method: method, URL: url, Host: "localhost"}
	if method == "" || strings.Trim(method, capitals) != "" {
		return nil, fmt.Errorf("invalid method %q: give it in capitals, as in PUT URL", method)
	}
	r.Path, r.Unix = strings.CutPrefix(url, "unix:/")
	rest, isHTTP := strings.CutPrefix(url, "http://")
	isPlain := !strings.ContainsFunc(url, func(c rune) bool { return c <= ' ' || c > '~' })
	if isHTTP {
		end := strings.IndexAny(rest+"/", "/?")
		r.Host, r.Path = rest[:end], strings.TrimPrefix(rest[end:], "/")
		host, isLocal := strings.CutPrefix(r.Host, "localhost")
		isHTTP = isLocal == (host == "" || host[0] == ':') &&
			(parseAddress(&r.target, "", host) == nil || parseAddress(&r.target, "", host+":80") == nil)
	}
	r.Path = "/" + r.Path
	if !isPlain || !isHTTP && !r.Unix {
		return nil, fmt.Errorf("invalid URL %q: give http://ADDRESS:PORT/PATH, with a numeric address or localhost "+
			"(no name is resolved), or unix:/SOCKET/PATH", url)
	}
	return r, nil
}

// Targets returns the addresses to try, in order; none for a Unix socket.
func (r *Request) Targets() []netip.AddrPort { return Spec{Target: r.target}.Targets() }

// String returns the method and the URL.
func (r *Request) String() string { return r.Method + " " + r.URL }
