package e2e

// webCases are the servers of TestPresetsWeb, each configured to call the backend before a
// reply.
var webCases = map[string]*webCase{
	"haproxy": {
		preset: "haproxy", needs: []string{"haproxy"},
		files:   map[string]string{"cfg": haproxyProxy},
		command: "haproxy -db -f DIR/cfg",
	},
	"haproxy-master": { // as the official image starts it
		preset: "haproxy", needs: []string{"haproxy"},
		files:   map[string]string{"cfg": haproxyProxy},
		command: "haproxy -W -db -f DIR/cfg", ready: awaitMaster,
	},
	"nginx": {
		preset: "nginx", needs: []string{"nginx"},
		files: map[string]string{"conf": `
user root;
pid DIR/nginx.pid;
error_log stderr error;
events {}
http {
    access_log off;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    server {
        listen 127.0.0.1:PORT;
        location / { proxy_pass http://127.0.0.1:BACKEND; }
    }
}
`},
		command: "nginx -c DIR/conf -g daemon~off;",
	},
	"httpd": {
		preset: "httpd", needs: []string{"apache2"},
		files: map[string]string{"conf": `
ServerRoot DIR
ServerName localhost
DefaultRuntimeDir DIR
PidFile DIR/pid
ErrorLog /dev/stderr
Listen 127.0.0.1:PORT
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
ProxyPass / http://127.0.0.1:BACKEND/
`},
		command: "apache2 -DFOREGROUND -f DIR/conf",
	},
	"php-fpm": {
		preset: "php-fpm", needs: []string{phpFPM},
		files:   map[string]string{"conf": phpConfig + "process_control_timeout = 10s\n" + phpPool, "slow.php": phpScript},
		command: phpFPM + " -R -F -y DIR/conf", get: fastCGI,
	},
	"uwsgi": {
		preset: "uwsgi", needs: []string{"uwsgi"},
		files:   map[string]string{"app.py": pythonApp},
		command: uwsgiCommand + " --hook-master-start=unix_signal:15~gracefully_kill_them_all",
	},
	"gunicorn": {
		preset: "gunicorn", needs: []string{"gunicorn"},
		files:   map[string]string{"app.py": pythonApp},
		command: "gunicorn --chdir DIR -b 127.0.0.1:PORT app",
	},
	"unicorn": {
		preset: "unicorn", needs: []string{"unicorn"},
		files:   map[string]string{"config.ru": rackApp},
		command: "unicorn -l 127.0.0.1:PORT DIR/config.ru",
	},
	"puma": {
		preset: "puma", needs: []string{"puma"},
		files:   map[string]string{"config.ru": rackApp},
		command: "puma -b tcp://127.0.0.1:PORT DIR/config.ru",
	},
	"caddy": {
		preset: "caddy", needs: []string{"caddy"},
		files: map[string]string{"Caddyfile": `
{
	admin off
}
http://127.0.0.1:PORT {
	reverse_proxy 127.0.0.1:BACKEND
}
`},
		command: "caddy run --config DIR/Caddyfile",
	},
	"php-fpm-unset": { // without process_control_timeout
		preset: "php-fpm", needs: []string{phpFPM},
		files:   map[string]string{"conf": phpConfig + phpPool, "slow.php": phpScript},
		command: phpFPM + " -R -F -y DIR/conf", get: fastCGI, alwaysCut: true, savedByHold: true,
	},
	"uwsgi-die-on-term": {
		preset: "uwsgi", needs: []string{"uwsgi"},
		files:   map[string]string{"app.py": pythonApp},
		command: uwsgiCommand + " --die-on-term", alwaysCut: true,
	},
	"uwsgi-bare": { // TERM reloads
		preset: "uwsgi", needs: []string{"uwsgi"},
		files:   map[string]string{"app.py": pythonApp},
		command: uwsgiCommand, alwaysCut: true, keepsRunning: true,
	},
	"go": {
		preset: "go", command: "SELF helper slow-web PORT BACKEND graceful",
	},
	"go-bare": { // without a handler
		preset: "go", command: "SELF helper slow-web PORT BACKEND", alwaysCut: true, exitCode: 143,
	},
	"varnish": {
		preset: "varnish", needs: []string{"varnishd", "gcc"},
		files:   map[string]string{"cwd/x": ""},
		command: "varnishd -F -j none -a 127.0.0.1:PORT -b 127.0.0.1:BACKEND -n DIR/cwd", alwaysCut: true, savedByHold: true,
	},
	"node": {
		preset: "node", needs: []string{"node"},
		files:   map[string]string{"server.js": nodeApp + "process.on('SIGTERM', () => server.close())"},
		command: "node DIR/server.js",
	},
	"node-bare": { // without a handler
		preset: "node", needs: []string{"node"},
		files:   map[string]string{"server.js": nodeApp},
		command: "node DIR/server.js", alwaysCut: true, savedByHold: true, exitCode: 143,
	},
	"java": {
		preset: "java", needs: []string{"java"}, needsFiles: []string{javaCompiler},
		files: map[string]string{"Slow.java": javaApp}, setup: compileJava,
		command: "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp DIR Slow hook",
	},
	"java-bare": { // without a shutdown hook
		preset: "java", needs: []string{"java"}, needsFiles: []string{javaCompiler},
		files: map[string]string{"Slow.java": javaApp}, setup: compileJava,
		command: "java -Xshare:auto -XX:TieredStopAtLevel=1 -cp DIR Slow", alwaysCut: true,
	},
	"tomcat": {
		preset: "tomcat", needs: []string{"java"}, needsFiles: []string{tomcatScript},
		files:   map[string]string{"conf/server.xml": tomcatServer, "webapps/ROOT/slow.jsp": tomcatPage, "conf/web.xml": tomcatWeb},
		command: "env CATALINA_BASE=DIR JAVA_OPTS=-XX:TieredStopAtLevel=1 " + tomcatScript + " run",
	},
}
