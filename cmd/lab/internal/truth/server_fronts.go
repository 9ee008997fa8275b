package truth

import "strings"

// Proxies with HTTP/2, whose upstream answers as newWeb in server_web.go. Without TLS
// nginx and HAProxy speak HTTP/2 alone (h2c).
var (
	nginxH2    = nginxFront("ssl http2")
	nginxH2C   = nginxFront("http2")
	nginxChat  = nginxFront("")
	haproxyH2  = haproxyFront("ssl crt DIR/cert.pem alpn h2,http/1.1")
	haproxyH2C = haproxyFront("proto h2")
	apache     = apacheFront("")
	apacheTLS  = apacheFront("SSLEngine on\nSSLCertificateFile DIR/cert.pem")
	caddy      = caddyFront("http://", "")
	caddyTLS   = caddyFront("", "tls DIR/cert.pem DIR/cert.pem")
)

func front(program, text string, tls bool, words ...string) *server {
	command := configured(map[string]string{"front": text}, append([]string{program}, words...)...)
	return &server{needs: []string{program}, tls: tls, command: withCertificate(command)}
}

func nginxFront(listen string) *server {
	more := []string{
		"location /ws { proxy_pass http://UPSTREAM; proxy_read_timeout 300s;",
		"proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }",
	}
	tls := strings.Contains(listen, "ssl")
	if tls {
		more = append(more, "ssl_protocols TLSv1.2 TLSv1.3;", "ssl_certificate DIR/cert.pem;", "ssl_certificate_key DIR/cert.pem;")
	}
	return front("nginx", nginxConfig(" "+listen, more...), tls, "-c", "DIR/front")
}

func haproxyFront(bind string) *server {
	text := haproxyConfig(" "+bind) + "    timeout tunnel 300s\n"
	return front("haproxy", text, strings.Contains(bind, "ssl"), "-db", "-f", "DIR/front")
}

// apacheFront returns Apache with the event MPM, as a proxy with CONNECT to the upstream.
func apacheFront(tls string) *server {
	return front("apache2", `
ServerRoot DIR
DefaultRuntimeDir DIR
PidFile DIR/pid
ErrorLog DIR/errors
LogLevel emerg
ServerName truth
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule proxy_connect_module /usr/lib/apache2/modules/mod_proxy_connect.so
LoadModule ssl_module /usr/lib/apache2/modules/mod_ssl.so
LoadModule http2_module /usr/lib/apache2/modules/mod_http2.so
StartServers 1
ServerLimit 2
ThreadsPerChild 64
MaxRequestWorkers 128
KeepAliveTimeout 300
Listen PORT
Protocols h2 h2c http/1.1
ProxyRequests On
AllowCONNECT 9000
ProxyPass / http://UPSTREAM/ flushpackets=on upgrade=websocket
`+tls, tls != "", "-D", "FOREGROUND", "-f", "DIR/front")
}

func caddyFront(scheme, tls string) *server {
	return front("caddy", `
{
	admin off
	auto_https off
	servers {
		protocols h1 h2 h2c
	}
	log {
		level ERROR
	}
}
`+scheme+`:PORT {
	`+tls+`
	reverse_proxy UPSTREAM {
		flush_interval -1
	}
}
`, tls != "", "run", "--adapter", "caddyfile", "--config", "DIR/front")
}
