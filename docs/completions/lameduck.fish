# fish completion for lameduck. Made from its grammar: go test ./cmd/lameduck -update

# What may stand at the cursor: first (a subcommand too), run, a subcommand's name,
# or command, of which the words are put into __lameduck_words.
function __lameduck_place
    set -l tokens (commandline -opc)
    set -l value ''
    set -l mode run
    set -l valued rewrite stop-signal preset delay until max-delay grace-period wait-gone on-stop quiet-for max-silence count-port ignore-port ignore-peer stop-schedule kill-after linger alive-file health health-during exit-code parent-death-signal termination-log log-level log-format
    for i in (seq 2 (count $tokens))
        set -l word $tokens[$i]
        if test -n "$value"
            set value ''
        else if test "$word" = --
            set -g __lameduck_words $tokens[(math $i + 1)..-1]
            echo command
            return
        else if string match -qr -- '^--.*=' $word
            continue
        else if string match -qr -- '^--' $word
            contains -- (string sub -s 3 -- $word) $valued; and set value yes
        else if string match -qr -- '^-.' $word
            # -gd 5: the first that takes a value takes the rest, or the next word.
            string match -qr -- '^-[^rpdue]*[rpdue]$' $word; and set value yes
        else if test $i -eq 2; and contains -- $word hold watch install presets
            set mode $word
        else if test $mode = run
            set -g __lameduck_words $tokens[$i..-1]
            echo command
            return
        end
    end
    if test (count $tokens) -eq 1
        echo first
    else
        echo $mode
    end
end

function __lameduck_in
    contains -- (__lameduck_place) $argv
end

# A value's part at the cursor, without the flag.
function __lameduck_value
    commandline -ct | string replace -r -- '^(--[a-z-]+=|-[a-zA-Z])' ''
end

# __lameduck_list SEPARATOR WORD...: what stands before the last separator stays.
function __lameduck_list
    printf '%s\n' (string replace -r -- '[^'$argv[1]']*$' '' (__lameduck_value)| string join '')$argv[2..-1]
end

function __lameduck_rewrites
    if string match -qr -- ':[^,]*$' (__lameduck_value)
        __lameduck_list : HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS 0
    else
        __lameduck_list , HUP: INT: QUIT: ILL: TRAP: ABRT: BUS: FPE: USR1: SEGV: USR2: PIPE: ALRM: TERM: STKFLT: CONT: TSTP: TTIN: TTOU: URG: XCPU: XFSZ: VTALRM: PROF: WINCH: IO: PWR: SYS:
    end
end

complete -c lameduck -f
complete -c lameduck -n '__lameduck_in command' -xa '(complete -C (string join -- " " (string escape -- $__lameduck_words) (commandline -ct)))'
complete -c lameduck -n '__lameduck_in first run; and not string match -q -- "-*" (commandline -ct)' -xa '(complete -C (commandline -ct))'
complete -c lameduck -n '__lameduck_in first' -xa 'hold watch install presets'
complete -c lameduck -n '__lameduck_in presets' -xa 'auto haproxy nginx openresty httpd apache2 apache php-fpm fpm php uwsgi gunicorn unicorn puma sidekiq caddy traefik envoy varnish varnishd postgres postgresql pgbouncer mariadb mysql mysqld mariadbd redis valkey memcached mongodb mongo mongod mongos rabbitmq nats nats-server tomcat catalina java jvm spring spring-boot node nodejs go golang systemd'
complete -c lameduck -n '__lameduck_in install' -xa '(__fish_complete_directories)'

complete -c lameduck -n '__lameduck_in first run' -s r -l rewrite -d 'send TO where FROM arrives' -xa '(__lameduck_rewrites)'
complete -c lameduck -n '__lameduck_in first run' -l stop-signal -d 'start the stop on these too' -xa '(__lameduck_list , HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM STKFLT CONT TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS)'
complete -c lameduck -n '__lameduck_in first run' -s p -l preset -d 'what a known server takes for a graceful stop' -xa 'auto haproxy nginx openresty httpd apache2 apache php-fpm fpm php uwsgi gunicorn unicorn puma sidekiq caddy traefik envoy varnish varnishd postgres postgresql pgbouncer mariadb mysql mysqld mariadbd redis valkey memcached mongodb mongo mongod mongos rabbitmq nats nats-server tomcat catalina java jvm spring spring-boot node nodejs go golang systemd'
complete -c lameduck -n '__lameduck_in first run' -s g -l group -d 'signal the process group of the command'
complete -c lameduck -n '__lameduck_in first run' -l drop-unhandled -d 'pass on only what the command catches'
complete -c lameduck -n '__lameduck_in first run' -s d -l delay -d 'keep serving at least this long' -x
complete -c lameduck -n '__lameduck_in first run' -s u -l until -d 'hold on until traffic has stopped' -xa 'elapsed settled quiet drained'
complete -c lameduck -n '__lameduck_in first run' -l max-delay -d 'hold no longer than this' -x
complete -c lameduck -n '__lameduck_in first run' -l grace-period -d 'what the orchestrator gives before KILL' -x
complete -c lameduck -n '__lameduck_in first run' -l wait-gone -d 'also hold while this file exists' -rF
complete -c lameduck -n '__lameduck_in first run' -l on-stop -d 'run this when the stop begins' -xa '(complete -C (__lameduck_value))'
complete -c lameduck -n '__lameduck_in first run' -l quiet-for -d 'how long the silence must last' -x
complete -c lameduck -n '__lameduck_in first run' -l max-silence -d 'how long a silent request holds' -x
complete -c lameduck -n '__lameduck_in first run' -l count-port -d 'the local ports that count' -x
complete -c lameduck -n '__lameduck_in first run' -l ignore-port -d 'local ports that do not count' -x
complete -c lameduck -n '__lameduck_in first run' -l ignore-peer -d 'peers that do not count' -x
complete -c lameduck -n '__lameduck_in first run' -l ignore-probes -d 'leave out what looks like health probes'
complete -c lameduck -n '__lameduck_in first run' -l stop-schedule -d 'what to send after the hold' -xa '(__lameduck_list / HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS forever)'
complete -c lameduck -n '__lameduck_in first run' -l kill-after -d 'KILL what runs this long after the signal' -x
complete -c lameduck -n '__lameduck_in first run' -l linger -d 'wait this long for what the command left' -x
complete -c lameduck -n '__lameduck_in first run' -l alive-file -d 'a file that exists while the command runs' -rF
complete -c lameduck -n '__lameduck_in first run' -l health -d 'answer health checks here' -x
complete -c lameduck -n '__lameduck_in first run' -l health-during -d 'how, from the stop signal on' -xa 'fail pass close'
complete -c lameduck -n '__lameduck_in first run' -s e -l exit-code -d 'report an exit code as another' -x
complete -c lameduck -n '__lameduck_in first run' -s s -l subreaper -d 'reap orphans where not PID 1'
complete -c lameduck -n '__lameduck_in first run' -l parent-death-signal -d 'what lameduck gets when its parent dies' -xa 'HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS'
complete -c lameduck -n '__lameduck_in first run' -l termination-log -d 'where the report goes as well' -rF
complete -c lameduck -n '__lameduck_in first run' -l log-level -d 'what is said' -xa 'error warn info debug'
complete -c lameduck -n '__lameduck_in first run' -l log-format -d 'how it is said' -xa 'text json'
complete -c lameduck -n '__lameduck_in first run' -l explain -d 'say what would happen, start nothing'
complete -c lameduck -n '__lameduck_in first run' -l version -d 'the version'
complete -c lameduck -n '__lameduck_in first run' -s h -l help -d 'the everyday flags'
complete -c lameduck -n '__lameduck_in first run' -l help-all -d 'all flags'

complete -c lameduck -n '__lameduck_in hold' -s d -l delay -d 'keep serving at least this long' -x
complete -c lameduck -n '__lameduck_in hold' -s u -l until -d 'hold on until traffic has stopped' -xa 'elapsed settled quiet drained'
complete -c lameduck -n '__lameduck_in hold' -l max-delay -d 'hold no longer than this' -x
complete -c lameduck -n '__lameduck_in hold' -l grace-period -d 'what the orchestrator gives before KILL' -x
complete -c lameduck -n '__lameduck_in hold' -l wait-gone -d 'also hold while this file exists' -rF
complete -c lameduck -n '__lameduck_in hold' -l on-stop -d 'run this when the stop begins' -xa '(complete -C (__lameduck_value))'
complete -c lameduck -n '__lameduck_in hold' -l quiet-for -d 'how long the silence must last' -x
complete -c lameduck -n '__lameduck_in hold' -l max-silence -d 'how long a silent request holds' -x
complete -c lameduck -n '__lameduck_in hold' -l count-port -d 'the local ports that count' -x
complete -c lameduck -n '__lameduck_in hold' -l ignore-port -d 'local ports that do not count' -x
complete -c lameduck -n '__lameduck_in hold' -l ignore-peer -d 'peers that do not count' -x
complete -c lameduck -n '__lameduck_in hold' -l ignore-probes -d 'leave out what looks like health probes'
complete -c lameduck -n '__lameduck_in hold' -l termination-log -d 'where the report goes as well' -rF
complete -c lameduck -n '__lameduck_in hold' -l log-level -d 'what is said' -xa 'error warn info debug'
complete -c lameduck -n '__lameduck_in hold' -l log-format -d 'how it is said' -xa 'text json'
complete -c lameduck -n '__lameduck_in hold' -s h -l help -d 'the everyday flags'

complete -c lameduck -n '__lameduck_in watch' -l quiet-for -d 'how long the silence must last' -x
complete -c lameduck -n '__lameduck_in watch' -l max-silence -d 'how long a silent request holds' -x
complete -c lameduck -n '__lameduck_in watch' -l count-port -d 'the local ports that count' -x
complete -c lameduck -n '__lameduck_in watch' -l ignore-port -d 'local ports that do not count' -x
complete -c lameduck -n '__lameduck_in watch' -l ignore-peer -d 'peers that do not count' -x
complete -c lameduck -n '__lameduck_in watch' -l ignore-probes -d 'leave out what looks like health probes'
complete -c lameduck -n '__lameduck_in watch' -l json -d 'one JSON object a line'
complete -c lameduck -n '__lameduck_in watch' -s h -l help -d 'the everyday flags'
