package cli

// The grammars. Each flag is a field, and everything known of the flag is in the field's
// type and tags: kong's own (name, short, env, negatable, placeholder, group, help), and
//
//	common  the flag's line in --help; --help-all has all flags, with their help
//	hook    the same in the help of lameduck hold, where the flag has another default
//	needs   what the flag has an effect with: see met in config.go

// Run is the command line of lameduck itself.
type Run struct {
	Line `kong:"-"`
	Hold
	Traffic
	Signals
	Stop
	Exit
	Report
	Neighbors
	Process
	Ask
}

// HoldOnly is the command line of lameduck hold.
type HoldOnly struct {
	Line `kong:"-"`
	Hold
	Traffic
	Report
	ExplainFlag
	HelpFlag
	HelpAllFlag
}

// Watch is the command line of lameduck watch.
type Watch struct {
	Line `kong:"-"`
	WatchForm
	Traffic
	HelpFlag
	HelpAllFlag
}

// Hold has the flags of the hold, apart from Traffic.
type Hold struct {
	Delay       Duration    `name:"delay" short:"d" env:"LAMEDUCK_DELAY" placeholder:"DUR" group:"Hold:" common:"keep serving at least this long after a stop signal [0]" hook:"wait at least this long [0]" help:"keep serving at least this long after a stop signal, then forward it; a second stop signal, or INT, ends the wait [0]"`
	Until       Condition   `name:"until" short:"u" env:"LAMEDUCK_UNTIL" placeholder:"COND" group:"Hold:" common:"then until settled (no new connections), quiet (no bytes) or drained (none open) [elapsed]" hook:"then wait until settled (no new connections), quiet (no bytes) or drained (none open); elapsed: only for the delay [quiet]" help:"then wait until traffic stops: settled (no new connections), quiet (also no bytes and no request in flight), drained (also no open connections) [elapsed; for lameduck hold quiet]"`
	GracePeriod GracePeriod `name:"grace-period" env:"LAMEDUCK_GRACE_PERIOD" placeholder:"DUR" group:"Hold:" common:"time until the orchestrator's KILL [assumed]" hook:"time until the orchestrator's KILL; hooks are part of it [assumed]" needs:"sequence" help:"the time that the orchestrator gives before KILL; the hold must fit [30s in Kubernetes and ECS, 5s in Nomad, else 10s]"`
	MaxDelay    Length      `name:"max-delay" env:"LAMEDUCK_MAX_DELAY" placeholder:"DUR" group:"Hold:" hook:"wait no longer than this: the ceiling [from the grace period]" needs:"hold" help:"hold no longer than this: the ceiling [from the grace period]"`
	WaitGone    Paths       `name:"wait-gone" env:"LAMEDUCK_WAIT_GONE" placeholder:"PATH" group:"Hold:" help:"also hold while PATH exists: a neighbor's --alive-file, or a socket; repeatable [none]"`
	OnStop      Words       `name:"on-stop" env:"LAMEDUCK_ON_STOP" placeholder:"COMMAND" group:"Hold:" help:"run COMMAND when the stop begins, with LAMEDUCK_PID and LAMEDUCK_SIGNAL set; the hold lasts until it exits; killed at the ceiling [none]"`
}

// Traffic has the flags about which traffic holds, and for how long.
type Traffic struct {
	QuietFor     Length `name:"quiet-for" env:"LAMEDUCK_QUIET_FOR" placeholder:"DUR" group:"Traffic:" needs:"until" help:"how long the silence must last [4s, or half of the ceiling if that is less]"`
	MaxSilence   Length `name:"max-silence" env:"LAMEDUCK_MAX_SILENCE" placeholder:"DUR" group:"Traffic:" needs:"until" help:"a request in flight without a byte for this long, counted from the stop signal at the earliest, no longer holds [30s]"`
	CountPort    Ports  `name:"count-port" env:"LAMEDUCK_COUNT_PORT" placeholder:"PORT,..." group:"Traffic:" needs:"hold" help:"the local ports that count [the ports that the container listens on]"`
	IgnorePort   Ports  `name:"ignore-port" env:"LAMEDUCK_IGNORE_PORT" placeholder:"PORT,..." group:"Traffic:" needs:"hold" help:"local ports that do not count [none]"`
	IgnorePeer   Peers  `name:"ignore-peer" env:"LAMEDUCK_IGNORE_PEER" placeholder:"CIDR,..." group:"Traffic:" needs:"hold" help:"peers that do not count [none]"`
	IgnoreProbes Bool   `name:"ignore-probes" negatable:"" env:"LAMEDUCK_IGNORE_PROBES" group:"Traffic:" needs:"until" help:"leave out at once, or never, what looks like health probes: from one peer, the same few bytes, at a steady period [when all else has been silent for --quiet-for]"`
}

// Signals has the flags about signals before and at a stop.
type Signals struct {
	Rewrite    Rewrites   `name:"rewrite" short:"r" env:"LAMEDUCK_REWRITE" placeholder:"FROM:TO,..." group:"Signals:" common:"send TO instead of FROM; HUP:0 drops HUP" help:"send TO instead of FROM; HUP:0 drops HUP"`
	StopSignal SignalList `name:"stop-signal" env:"LAMEDUCK_STOP_SIGNAL" placeholder:"SIG,..." group:"Signals:" common:"start the stop on SIG too, not only on TERM" help:"more signals that start the stop, besides TERM and the signal TERM is rewritten to"`
	Preset     Preset     `name:"preset" short:"p" env:"LAMEDUCK_PRESET" placeholder:"NAME" group:"Signals:" common:"graceful stop of a server: nginx, ...; auto" help:"the graceful stop of a known server: nginx, postgres, ...; auto: detect the server"`
	Group      Bool       `name:"group" short:"g" env:"LAMEDUCK_GROUP" group:"Signals:" help:"signal COMMAND's process group, not COMMAND alone"`
}

// Stop has the flags about what happens after the hold.
type Stop struct {
	StopSchedule Schedule `name:"stop-schedule" env:"LAMEDUCK_STOP_SCHEDULE" placeholder:"SCHEDULE" group:"Stop:" help:"what to send after the hold: signals, times to wait, and forever, which repeats the rest; a time alone: the stop signal, TIME, KILL [the stop signal]"`
	KillAfter    Length   `name:"kill-after" env:"LAMEDUCK_KILL_AFTER" placeholder:"DUR" group:"Stop:" help:"KILL COMMAND if it still runs this long after the first signal [never]"`
	Linger       Duration `name:"linger" env:"LAMEDUCK_LINGER" placeholder:"DUR" group:"Stop:" help:"when COMMAND has exited, send TERM to its remaining descendants, wait this long for them, then KILL [0]"`
}

// Exit has the flag about exit codes.
type Exit struct {
	ExitCode ExitCodes `name:"exit-code" short:"e" env:"LAMEDUCK_EXIT_CODE" placeholder:"FROM[:TO]" group:"Exit:" common:"report exit code FROM as TO [0]" help:"report exit code FROM as TO [0]; or a list: 143,130:2"`
}

// Report has the flags about what is written, and where.
type Report struct {
	LogLevel       Level          `name:"log-level" env:"LAMEDUCK_LOG_LEVEL" placeholder:"LEVEL" group:"Report:" common:"error, warn, info or debug [warn]" help:"error, warn, info or debug, on stderr [warn]"`
	LogFormat      Format         `name:"log-format" env:"LAMEDUCK_LOG_FORMAT" placeholder:"FORMAT" group:"Report:" help:"text or json, one line each [text]"`
	TerminationLog TerminationLog `name:"termination-log" env:"LAMEDUCK_TERMINATION_LOG" placeholder:"PATH" group:"Report:" help:"also write the report to PATH; none turns it off [/dev/termination-log if it is a file]"`
}

// Neighbors has the flags for health checks and other containers of the pod.
type Neighbors struct {
	Health       Health     `name:"health" env:"LAMEDUCK_HEALTH" placeholder:"LISTEN[=TARGET]" group:"Neighbors:" help:"answer health checks on LISTEN (:9000) with 200, or pass them through to TARGET (:8080); they do not count as traffic [none]"`
	HealthDuring HealthMode `name:"health-during" env:"LAMEDUCK_HEALTH_DURING" placeholder:"MODE" group:"Neighbors:" needs:"health" help:"health checks from the first stop signal on: fail (503), close (refused) or pass [pass in Kubernetes, else fail]"`
	AliveFile    Path       `name:"alive-file" env:"LAMEDUCK_ALIVE_FILE" placeholder:"PATH" group:"Neighbors:" help:"exists and is locked while COMMAND runs: the other half of --wait-gone [none]"`
}

// Process has the flags about lameduck as a process.
type Process struct {
	Subreaper         Choice `name:"subreaper" short:"s" env:"LAMEDUCK_SUBREAPER" group:"Process:" help:"reap orphans even if not PID 1; =false turns it off [whenever possible]"`
	ParentDeathSignal Signal `name:"parent-death-signal" env:"LAMEDUCK_PARENT_DEATH_SIGNAL" placeholder:"SIG" group:"Process:" help:"the signal that lameduck gets when its parent dies [none]"`
}

// Ask has the flags that only ask: no variable sets any of them.
type Ask struct {
	ExplainFlag
	Version Bool `name:"version" group:"Questions:" common:"print the version" help:"print the version"`
	HelpFlag
	HelpAll Bool `name:"help-all" group:"Questions:" common:"print all flags, with examples" help:"print all flags, with examples"`
}

// ExplainFlag has the flag that asks for the plan of a stop, or of a preStop hook.
type ExplainFlag struct {
	Explain Bool `name:"explain" group:"Questions:" common:"explain what a stop would do; start nothing" hook:"explain what the hook would wait for; wait for nothing" help:"explain what would happen at a stop; start nothing"`
}

// HelpFlag has the flag that asks for help.
type HelpFlag struct {
	Help Bool `name:"help" short:"h" group:"Questions:" common:"print this text" help:"print this text"`
}

// HelpAllFlag has the flag that asks a subcommand for the help of all its flags.
type HelpAllFlag struct {
	HelpAll Bool `name:"help-all" group:"Questions:" common:"print all flags, with their variables" help:"print all flags, with their variables"`
}

// WatchForm has the flag for the form of the live view.
type WatchForm struct {
	JSON Bool `name:"json" env:"LAMEDUCK_JSON" group:"View:" common:"print one JSON object per line" help:"print one JSON object per line"`
}
