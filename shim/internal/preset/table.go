package preset

import (
	"sync"

	"github.com/lameduck-init/lameduck/shim/internal/sig"
)

// on143 reports 143 as 0: the exit code of a server that ends by TERM after a graceful stop.
var on143 = []ExitCode{{From: 143, Stopped: true}}

// cutsAll is the caveat of servers that have no graceful stop.
const cutsAll = "every stop cuts what is under way: let the hold wait for it, with --until=drained or --until=quiet"

// table returns the presets in the order of the documentation. The first call builds the
// table: most runs do without a preset.
var table = sync.OnceValue(func() []Preset {
	return []Preset{
		{
			Name:        "haproxy",
			Programs:    []string{"haproxy"},
			StopSignals: []sig.Signal{sig.USR1},
			Schedule:    "USR1",
			Says: "closes its listeners and exits when the last connection has ended (bounded by " +
				"hard-stop-after); TERM cuts all at once",
			Source:     "HAProxy Management Guide, section 4, Stopping and restarting HAProxy",
			Proven:     true,
			ClosesKept: true,
			Kept: "closes idle connections at once and the others after their answer; with option " +
				"idle-close-on-response, each connection after its next answer",
		}, {
			Name:        "nginx",
			Aliases:     []string{"openresty"},
			Programs:    []string{"nginx", "nginx-debug", "openresty"},
			StopSignals: []sig.Signal{sig.QUIT},
			Schedule:    "QUIT",
			Says: "closes its listeners, finishes the requests and exits (bounded by " +
				"worker_shutdown_timeout); TERM and INT cut",
			Source:     "nginx(8), SIGNALS",
			Proven:     true,
			ClosesKept: true,
			Kept:       "closes idle connections at once and the others after their answer",
		}, {
			Name:        "httpd",
			Aliases:     []string{"apache2", "apache"},
			Programs:    []string{"httpd", "apache2", "httpd-foreground"},
			StopSignals: []sig.Signal{sig.WINCH},
			Schedule:    "WINCH",
			Says: "closes its listeners, finishes the requests and exits (bounded by " +
				"GracefulShutdownTimeout); TERM cuts, USR1 restarts",
			Source:     "httpd manual, Stopping and Restarting, Graceful Stop",
			Proven:     true,
			ClosesKept: true,
			Kept: "closes idle connections at once and the others after their answer; cuts some " +
				"requests over HTTP/2",
		}, {
			Name:        "php-fpm",
			Aliases:     []string{"fpm", "php"},
			Programs:    []string{"php-fpm"},
			StopSignals: []sig.Signal{sig.QUIT},
			Schedule:    "QUIT",
			Says: "finishes the requests within process_control_timeout and exits; TERM and INT cut, " +
				"USR2 reloads",
			Caveat: "process_control_timeout is 0 unless php-fpm.conf sets it, and QUIT then cuts: set it " +
				"in [global] to what requests need, below what the grace period leaves",
			Source: "php-fpm(8), SIGNAL; php.net, FPM configuration, process_control_timeout",
			Proven: true,
			Kept:   "leaves requests on kept connections unanswered, and cuts them at its exit",
		}, {
			Name:     "uwsgi",
			Programs: []string{"uwsgi", "uwsgi-core", "uwsgi_python", "pyuwsgi"},
			Schedule: "TERM",
			Says:     "finishes the requests and exits, if a hook maps TERM to gracefully_kill_them_all",
			Caveat: "without a hook TERM makes uWSGI reload and go on, and with die-on-term it cuts " +
				"requests: give --hook-master-start='unix_signal:15 gracefully_kill_them_all'",
			Source: "uWSGI documentation, Managing the uWSGI server, and Hooks",
			Proven: true,
			Kept:   "leaves requests on kept connections unanswered, and cuts them at its exit",
		}, {
			Name:     "gunicorn",
			Programs: []string{"gunicorn", "gunicorn3"},
			Schedule: "TERM",
			Says: "closes its listeners, finishes the requests within graceful_timeout and exits; " +
				"QUIT and INT cut",
			Caveat: "requests get graceful_timeout after TERM (30 s unless configured): let the grace " +
				"period leave more after the hold (--grace-period, --max-delay), or give a shorter one",
			Source: "Gunicorn documentation, Signal Handling",
			Proven: true,
			Kept: "sync workers, the default, keep none; gthread workers leave requests on kept " +
				"connections unanswered, and cut them at their exit",
		}, {
			Name:     "uvicorn",
			Aliases:  []string{"fastapi"},
			Programs: []string{"uvicorn"},
			Schedule: "TERM",
			Exit:     on143,
			Says: "closes its listeners, finishes the requests and exits, since 0.29 with 143, which is " +
				"reported as 0; INT does the same, and a second one cuts; QUIT cuts",
			Caveat: "uvicorn waits for streams and WebSockets without end, up to the orchestrator's KILL: " +
				"give --timeout-graceful-shutdown (since 0.22), less than the grace period leaves",
			Source: "Uvicorn documentation, Settings, --timeout-graceful-shutdown; uvicorn/server.py",
			Proven: true,
			Kept: "closes idle connections at once and the others after their answer, and cuts some " +
				"requests",
		}, {
			Name:     "hypercorn",
			Programs: []string{"hypercorn"},
			Schedule: "TERM",
			Says: "closes its listeners and finishes the requests within graceful_timeout (3 s); INT does " +
				"the same",
			Caveat: "Hypercorn answers 500 to requests that are under way 3 s after TERM: give a longer " +
				"--graceful-timeout, less than the grace period leaves",
			Source: "Hypercorn documentation, Configuration options, graceful_timeout",
			Proven: true,
		}, {
			Name:     "unicorn",
			Programs: []string{"unicorn", "unicorn_rails"},
			Schedule: "QUIT",
			Says:     "finishes the requests and exits; TERM and INT cut",
			Source:   "unicorn SIGNALS",
			Proven:   true,
		}, {
			Name:     "puma",
			Programs: []string{"puma", "pumactl"},
			Schedule: "TERM",
			Exit:     on143,
			Says: "closes its listeners, finishes the requests and ends by TERM, so with 143, which is " +
				"reported as 0",
			Source:     "puma docs/signals.md; raise_exception_on_sigterm in its DSL",
			Proven:     true,
			ClosesKept: true,
			Kept:       "closes idle connections at once and the others after their answer",
		}, {
			Name:     "sidekiq",
			Programs: []string{"sidekiq", "sidekiqswarm"},
			Schedule: "TERM",
			Says: "takes no new job, waits for those under way until its timeout, puts back the others " +
				"and exits",
			Caveat: "jobs get Sidekiq's timeout after TERM (25 s unless configured): let the grace " +
				"period leave more after the hold (--grace-period, --max-delay), or give a shorter -t",
			Source: "Sidekiq wiki, Signals",
			Proven: true,
		}, {
			Name:     "celery",
			Programs: []string{"celery"},
			Schedule: "TERM",
			Says:     "takes no new task, finishes those under way, however long, and exits; QUIT cuts them",
			Caveat: "a worker listens nowhere, so no hold waits for its tasks: let the grace period leave " +
				"what tasks need, and set task_acks_late for those that may be cut",
			Source:    "Celery documentation, Workers Guide, Stopping the worker",
			Proven:    true,
			GroupCuts: true,
		}, {
			Name:     "caddy",
			Programs: []string{"caddy"},
			Schedule: "TERM",
			Says: "closes its listeners, finishes the requests (bounded by grace_period) and exits; " +
				"QUIT, or a second INT, cuts",
			Source:     "Caddy documentation, Command Line, Signals; Caddyfile, grace_period",
			Proven:     true,
			ClosesKept: true,
			Kept: "closes idle connections at once and the others after their answer; over HTTP/2, 2.6 " +
				"cuts some requests, and 2.11 none",
		}, {
			Name:     "traefik",
			Programs: []string{"traefik"},
			Schedule: "TERM",
			Says: "goes on for transport.lifeCycle.requestAcceptGraceTimeout (0), closes its listeners " +
				"and finishes the requests within graceTimeOut (10 s); USR1 reopens logs",
			Source: "Traefik documentation, EntryPoints, Transport, lifeCycle",
		}, {
			Name:     "envoy",
			Programs: []string{"envoy"},
			Schedule: "TERM",
			Says:     "exits at once and cuts all",
			Caveat: "Envoy never drains at a stop: let the hold do it, with --until=drained and " +
				"--on-stop=http://127.0.0.1:9901/drain_listeners?graceful, which asks clients to leave",
			Source: "Envoy documentation, Draining, and Administration interface, drain_listeners",
		}, {
			Name:     "varnish",
			Aliases:  []string{"varnishd"},
			Programs: []string{"varnishd"},
			Schedule: "TERM",
			Says:     "stops its child at once, which cuts all requests",
			Caveat:   cutsAll,
			Source:   "varnishd(1), which speaks of no signal; tried with 7.1",
			Proven:   true,
		}, {
			Name:        "postgres",
			Aliases:     []string{"postgresql"},
			Programs:    []string{"postgres", "postmaster"},
			StopSignals: []sig.Signal{sig.INT},
			Schedule:    "TERM/2s/INT",
			Says: "smart shutdown first: new connections are refused, and it exits as soon as the last " +
				"session has ended; after 2 s fast shutdown: open transactions are rolled back (alone, " +
				"TERM waits forever for a pool's connections)",
			Source: "PostgreSQL documentation, Shutting Down the Server",
			Proven: true,
			Kept:   "goes on answering for the 2 s up to INT, which cuts",
		}, {
			Name:     "pgbouncer",
			Programs: []string{"pgbouncer"},
			Schedule: "INT",
			Says: "waits until the servers are released and exits; TERM cuts, and since 1.23 waits for " +
				"all clients to leave; a second TERM or INT cuts",
			Caveat: "with pool_mode=session, the default, INT waits until the clients leave by themselves: " +
				"set pool_mode=transaction",
			Source: "pgbouncer(1), Signals",
			Proven: true,
		}, {
			Name:     "mariadb",
			Aliases:  []string{"mysql", "mysqld", "mariadbd"},
			Programs: []string{"mariadbd", "mysqld", "mysqld-debug"},
			Schedule: "TERM",
			Says:     "aborts what runs, rolls back open transactions and exits when all is on disk",
			Caveat:   cutsAll,
			Source:   "MariaDB documentation, SHUTDOWN; MySQL Reference Manual, The Server Shutdown Process",
			Proven:   true,
		}, {
			Name:    "redis",
			Aliases: []string{"valkey"},
			Programs: []string{
				"redis-server", "redis-sentinel", "redis-check-rdb",
				"valkey-server", "valkey-sentinel", "valkey-check-rdb",
			},
			Schedule: "TERM",
			Says: "waits up to shutdown-timeout (10 s) for replicas to catch up, saves if it is " +
				"configured to, and exits; commands that run or are blocked get no answer",
			Source: "Redis documentation, Signals Handling; redis.conf, shutdown-timeout and " +
				"shutdown-on-sigterm",
			Proven: true,
			Kept:   "cuts commands that wait at its exit",
		}, {
			Name:     "memcached",
			Programs: []string{"memcached"},
			Schedule: "USR1",
			Says: "exits at once as on TERM, but keeps the cache for the next start where --memory-file " +
				"is given",
			Source: "memcached(1), -e; Memcached documentation, Warm Restart",
			Proven: true,
			Kept:   "cuts commands at its exit",
		}, {
			Name:     "mongodb",
			Aliases:  []string{"mongo", "mongod", "mongos"},
			Programs: []string{"mongod", "mongos"},
			Schedule: "TERM",
			Says: "steps down, takes no new operation, lets those under way end (since 5.0, in a replica " +
				"set) and exits",
			Caveat: "a replica set's member and mongos let operations end for 15 s after TERM: let the " +
				"grace period leave more after the hold (--grace-period, --max-delay), or set " +
				"shutdownTimeoutMillisForSignaledShutdown",
			Source: "MongoDB manual, shutdown command, and Parameters, " +
				"shutdownTimeoutMillisForSignaledShutdown",
		}, {
			Name:     "rabbitmq",
			Programs: []string{"rabbitmq-server"},
			Schedule: "TERM",
			Says: "closes all connections and exits; messages that were not acknowledged are delivered " +
				"again",
			Source: "RabbitMQ documentation, rabbitmq-server(8), and Monitoring, Inspecting and " +
				"Terminating Nodes",
		}, {
			Name:     "nats",
			Aliases:  []string{"nats-server"},
			Programs: []string{"nats-server"},
			Schedule: "USR2/2s/INT",
			Says: "lame duck mode: takes no new connection, tells its clients to leave, and exits when " +
				"none is left; after 2 s closes the rest and exits (TERM does only that)",
			Caveat: "lame duck mode takes lame_duck_duration (2 min; at least 30 s), more than a preset " +
				"may: for all of it give --stop-schedule=USR2/2m/INT and a grace period above that",
			Source: "NATS documentation, Signals, and Lame Duck Mode",
			Proven: true,
		}, {
			Name:     "tomcat",
			Aliases:  []string{"catalina"},
			Programs: []string{"tomcat"},
			Schedule: "TERM",
			Exit:     on143,
			Says: "stops taking connections, gives the requests unloadDelay (2 s), cuts the others, and " +
				"exits with 143, which is reported as 0",
			Caveat: "Tomcat cuts requests 2 s after TERM, unless conf/context.xml gives Context a longer " +
				"one (unloadDelay=\"20000\")",
			Source: "Tomcat Configuration Reference, The Context Container, unloadDelay",
			Proven: true,
			Kept:   "closes connections when the next request comes, which is lost",
		}, {
			Name:     "java",
			Aliases:  []string{"jvm", "spring", "spring-boot"},
			Programs: []string{"java"},
			Schedule: "TERM",
			Exit:     on143,
			Says: "runs its shutdown hooks and exits with 143, which is reported as 0; QUIT dumps its " +
				"threads and goes on; what happens to requests is the program's (Spring Boot: " +
				"server.shutdown=graceful, the default since 3.4)",
			Source: "java(1), -Xrs; java.lang.Runtime, addShutdownHook",
			Proven: true,
		}, {
			Name:     "node",
			Aliases:  []string{"nodejs"},
			Programs: []string{"node", "nodejs"},
			Schedule: "TERM",
			Says: "dies at once and cuts all, unless the program handles SIGTERM; USR1 opens the " +
				"debugger",
			Source: "Node.js documentation, process, Signal events",
			Proven: true,
			Kept: "server.close() closes idle connections only (since 19): the others are used to the " +
				"exit",
		}, {
			Name:     "go",
			Aliases:  []string{"golang"},
			Schedule: "TERM",
			Says: "dies at once and cuts all, unless the program handles SIGTERM (http.Server.Shutdown); " +
				"QUIT dumps its goroutines; auto never recognizes a Go program",
			Source: "package os/signal, Default behavior of signals in Go programs",
			Proven: true,
			Kept: "cut; http.Server.Shutdown closes idle connections at once and the others after their " +
				"answer",
		}, {
			Name:        "systemd",
			Programs:    []string{"systemd"},
			StopSignals: []sig.Signal{sig.RTMin + 3},
			Schedule:    "RTMIN+3",
			Says:        "shuts the whole system down, as halt does",
			Caveat: "systemd must be PID 1, and so does not run under lameduck: start it by itself, with " +
				"STOPSIGNAL SIGRTMIN+3, and have a preStop hook run lameduck hold",
			Source: "systemd(1), SIGNALS",
		},
	}
})
