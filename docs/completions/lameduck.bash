# bash completion for lameduck. Made from its grammar: go test ./cmd/lameduck -update

_lameduck() {
	local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} word rest stays
	local -a words at
	local -i i
	local mode=run value= cur

	# bash parts words at = and : too; here only blanks do.
	for ((i = 0; i <= COMP_CWORD; i++)); do
		rest=${line#"${line%%[![:blank:]]*}"}
		if ((i == 0)) || [[ $rest != "$line" ]]; then
			words+=("") at+=("$i")
		fi
		word=${COMP_WORDS[i]}
		((i < COMP_CWORD)) || word=$rest
		words[${#words[@]} - 1]+=$word
		line=${rest#"$word"}
	done
	cur=${words[${#words[@]} - 1]}
	COMPREPLY=()

	# Flags end at the first word that is none.
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		word=${words[i]}
		if [[ $value ]]; then
			value=
		elif [[ $word == -- ]]; then
			_lameduck_command $((i + 1))
			return
		elif [[ $word == --*=* ]]; then
			:
		elif [[ $word == --* ]]; then
			[[ " $(_lameduck_valued $mode) " == *" ${word#--} "* ]] && value=${word#--}
		elif [[ $word == -?* ]]; then
			# -gd 5: the first that takes a value takes the rest, or the next word.
			word=${word#-}
			while [[ $word ]]; do
				value=$(_lameduck_long "${word:0:1}")
				word=${word:1}
				if [[ $value ]]; then
					[[ $word ]] && value=
					break
				fi
			done
		elif ((i == 1)) && [[ " hold watch install presets " == *" $word "* ]]; then
			mode=$word
		elif [[ $mode == run ]]; then
			_lameduck_command $i
			return
		fi
	done

	if [[ $value ]]; then
		_lameduck_value "$value" "" "$cur"
	elif [[ $cur == --*=* ]]; then
		word=${cur%%=*}
		_lameduck_value "${word#--}" "$word=" "${cur#*=}"
	else
		case $mode in
		presets) COMPREPLY=($(compgen -W "auto haproxy nginx openresty httpd apache2 apache php-fpm fpm php uwsgi gunicorn unicorn puma sidekiq caddy traefik envoy varnish varnishd postgres postgresql pgbouncer mariadb mysql mysqld mariadbd redis valkey memcached mongodb mongo mongod mongos rabbitmq nats nats-server tomcat catalina java jvm spring spring-boot node nodejs go golang systemd" -- "$cur")) ;;
		install)
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -d -- "$cur")
			;;
		run)
			if [[ $cur == -* ]]; then
				COMPREPLY=($(compgen -W "$(_lameduck_flags $mode)" -- "$cur"))
			else
				((${#words[@]} == 2)) && COMPREPLY=($(compgen -W "hold watch install presets" -- "$cur"))
				COMPREPLY+=($(compgen -c -- "$cur"))
			fi
			;;
		*) COMPREPLY=($(compgen -W "$(_lameduck_flags $mode)" -- "$cur")) ;;
		esac
	fi

	# What bash takes for words already, before the last = or :, is not said again.
	stays=
	for word in = :; do
		if [[ $COMP_WORDBREAKS == *$word* && $cur == *$word* ]]; then
			rest=${cur%"${cur##*"$word"}"}
			((${#rest} > ${#stays})) && stays=$rest
		fi
	done
	COMPREPLY=("${COMPREPLY[@]#"$stays"}")
}

_lameduck_flags() {
	case $1 in
	run) echo "--rewrite --stop-signal --preset --group --drop-unhandled --delay --until --max-delay --grace-period --wait-gone --on-stop --quiet-for --max-silence --count-port --ignore-port --ignore-peer --ignore-probes --stop-schedule --kill-after --linger --alive-file --health --health-during --exit-code --subreaper --parent-death-signal --termination-log --log-level --log-format --explain --version --help --help-all" ;;
	hold) echo "--delay --until --max-delay --grace-period --wait-gone --on-stop --quiet-for --max-silence --count-port --ignore-port --ignore-peer --ignore-probes --termination-log --log-level --log-format --help" ;;
	watch) echo "--quiet-for --max-silence --count-port --ignore-port --ignore-peer --ignore-probes --json --help" ;;
	esac
}

# Those that take a value.
_lameduck_valued() {
	case $1 in
	run) echo "rewrite stop-signal preset delay until max-delay grace-period wait-gone on-stop quiet-for max-silence count-port ignore-port ignore-peer stop-schedule kill-after linger alive-file health health-during exit-code parent-death-signal termination-log log-level log-format" ;;
	hold) echo "delay until max-delay grace-period wait-gone on-stop quiet-for max-silence count-port ignore-port ignore-peer termination-log log-level log-format" ;;
	watch) echo "quiet-for max-silence count-port ignore-port ignore-peer" ;;
	esac
}

# The long form of a short flag that takes a value.
_lameduck_long() {
	case $1 in
	r) echo rewrite ;;
	p) echo preset ;;
	d) echo delay ;;
	u) echo until ;;
	e) echo exit-code ;;
	esac
}

# _lameduck_value FLAG BEFORE VALUE: what the value may become, BEFORE before it.
_lameduck_value() {
	local before=$2 cur=$3
	case $1 in
	until) _lameduck_words "elapsed settled quiet drained" ;;
	health-during) _lameduck_words "fail pass close" ;;
	log-level) _lameduck_words "error warn info debug" ;;
	log-format) _lameduck_words "text json" ;;
	preset) _lameduck_words "auto haproxy nginx openresty httpd apache2 apache php-fpm fpm php uwsgi gunicorn unicorn puma sidekiq caddy traefik envoy varnish varnishd postgres postgresql pgbouncer mariadb mysql mysqld mariadbd redis valkey memcached mongodb mongo mongod mongos rabbitmq nats nats-server tomcat catalina java jvm spring spring-boot node nodejs go golang systemd" ;;
	parent-death-signal) _lameduck_words "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS" ;;
	stop-signal)
		_lameduck_past ,
		_lameduck_words "HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM STKFLT CONT TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
		;;
	stop-schedule)
		_lameduck_past /
		_lameduck_words "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS forever"
		;;
	rewrite)
		_lameduck_past ,
		if [[ $cur == *:* ]]; then
			_lameduck_past :
			_lameduck_words "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS 0"
		else
			compopt -o nospace
			_lameduck_words "HUP: INT: QUIT: ILL: TRAP: ABRT: BUS: FPE: USR1: SEGV: USR2: PIPE: ALRM: TERM: STKFLT: CONT: TSTP: TTIN: TTOU: URG: XCPU: XFSZ: VTALRM: PROF: WINCH: IO: PWR: SYS:"
		fi
		;;
	wait-gone | alive-file | termination-log | -)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		COMPREPLY=("${COMPREPLY[@]/#/$before}")
		;;
	on-stop)
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		COMPREPLY=("${COMPREPLY[@]/#/$before}")
		;;
	esac
}

# What stands before the last separator stays as it is.
_lameduck_past() {
	local last=${cur##*"$1"}
	before+=${cur%"$last"} cur=$last
}

_lameduck_words() {
	COMPREPLY=($(compgen -P "$before" -W "$1" -- "$cur"))
}

# The command's own words are its own matter.
_lameduck_command() {
	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset "${at[$1]}"
	elif declare -F _command_offset >/dev/null; then
		_command_offset "${at[$1]}"
	elif (($1 == ${#words[@]} - 1)); then
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	else
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}

complete -F _lameduck lameduck
