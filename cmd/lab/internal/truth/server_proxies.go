package truth

import "strings"

// Proxies, whose upstream answers as answer in server_http.go.
var (
	nginx      = &server{needs: []string{"nginx"}, command: configured(map[string]string{"conf": nginxConfig("")}, "nginx", "-c", "DIR/conf")}
	nginxTLS   = &server{needs: []string{"nginx"}, tls: true, command: nginxOver("TLSv1.3")}
	nginxTLS12 = &server{needs: []string{"nginx"}, tls: true, command: nginxOver("TLSv1.2")}
	haproxy    = &server{needs: []string{"haproxy"}, command: configured(map[string]string{"cfg": haproxyConfig("")}, "haproxy", "-db", "-f", "DIR/cfg")}
	haproxyTLS = &server{needs: []string{"haproxy"}, tls: true, command: withCertificate(configured(map[string]string{"cfg": haproxyConfig(" ssl crt DIR/cert.pem")}, "haproxy", "-db", "-f", "DIR/cfg"))}
	// haproxyTunnels accepts two connections at a time; further ones wait in the kernel.
	haproxyTunnels = &server{needs: []string{"haproxy"}, command: configured(map[string]string{"cfg": haproxyMaxconn}, "haproxy", "-db", "-f", "DIR/cfg")}
)

// nginxOver returns the command of nginx with a version of TLS.
func nginxOver(version string) func(place) ([]string, error) {
	config := nginxConfig(" ssl", "ssl_protocols "+version+";", "ssl_certificate DIR/cert.pem;", "ssl_certificate_key DIR/cert.pem;")
	return withCertificate(configured(map[string]string{"conf": config}, "nginx", "-c", "DIR/conf"))
}

// nginxHead begins a configuration of nginx: a server and two closing braces follow.
const nginxHead = `
user root;
daemon off;
worker_processes 2;
pid DIR/pid;
error_log stderr emerg;
events {}
http {
    access_log off;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    keepalive_timeout 300s;
`

func nginxConfig(listen string, more ...string) string {
	return nginxHead + `
    server {
        listen PORT` + listen + `;
        ` + strings.Join(more, " ") + `
        location / { proxy_pass http://UPSTREAM; proxy_buffering off; proxy_request_buffering off; }
        location /static { return 200 served; }
    }
}
`
}

func haproxyConfig(bind string) string {
	return `
defaults
    mode http
    timeout client 300s
    timeout http-keep-alive 300s
    timeout connect 5s
    timeout server 300s
frontend web
    bind :PORT` + bind + `
    http-request return status 200 content-type text/plain string served if { path /static }
    default_backend apps
backend apps
    server app UPSTREAM
`
}

const haproxyMaxconn = `
global
    maxconn 2
defaults
    mode tcp
    timeout client 300s
    timeout connect 5s
    timeout server 300s
frontend web
    bind :PORT
    default_backend apps
backend apps
    server app UPSTREAM
`
