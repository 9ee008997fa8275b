#!/usr/bin/env bash
# "cluster.sh PART": what lab cluster does to the cluster that KUBECONFIG names, by kubectl.
# It runs in cmd/lab. WORK is a folder for its files, NAMESPACE the experiment's.
#
#   version   prints the cluster's version
#   images    builds the images, and brings each into the cluster
#   open      makes the namespace, and prints its name
#   play      rolls the Deployment of MANIFEST under load, and prints what became of it
#   close     deletes the namespace
set -euo pipefail
here=internal/cluster root=../..
patience=300 # seconds, for every wait
timeout=--timeout=${patience}s

kube() { kubectl ${NAMESPACE:+"--namespace=$NAMESPACE"} "$@"; }
fail() { echo "$*" >&2; exit 1; }

# until_true WHAT COMMAND... polls a command.
until_true() {
	local what=$1 end=$((SECONDS + patience))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "waited in vain for $what"
		sleep 0.2
	done
}

version() { kubectl get --raw /version --request-timeout=10s | jq -r .gitVersion; }

# files lists the paths of the images' programs, and where each comes from. All images have
# all programs, and differ in their configurations.
files() {
	local path
	echo lameduck lameduck
	echo load load
	for path in web shop docker-entrypoint.sh usr/local/bin/docker-entrypoint.sh usr/sbin/nginx usr/sbin/haproxy; do
		echo "$path" server
	done
}

# configs lists the images by their names in the manifests, with the configurations: the
# STOPSIGNALs and commands of HAProxy's and nginx's images, and Dockerfile.example's.
configs() {
	local path='"Env": ["PATH=/usr/local/bin:/usr/sbin"' example=$root/Dockerfile.example env entrypoint cmd
	env=$(sed -n 's/^ENV //p' "$example" | tr ' ' '\n' | sed 's/.*/, "&"/')
	entrypoint=$(sed -n 's/^ENTRYPOINT //p' "$example")
	cmd=$(sed -n 's/^CMD //p' "$example")
	local nginx='"Entrypoint": ["/docker-entrypoint.sh"], "Cmd": ["nginx", "-g", "daemon off;"]'
	local haproxy="\"Entrypoint\": $entrypoint, \"Cmd\": $cmd"
	cat <<-EOF
		ghcr.io/lameduck-init/lameduck:1 {"Entrypoint": ["/lameduck"]}
		nginxinc/nginx-unprivileged:1.29 {$path], "StopSignal": "SIGQUIT", $nginx}
		haproxy:3.2 {$path], "StopSignal": "SIGUSR1"}
		haproxy-lameduck:3.2 {$path${env//$'\n'/}], "StopSignal": "SIGUSR1", $haproxy}
		shop:1 {}
		web {"Entrypoint": ["/web"]}
		load {"Entrypoint": ["/load"]}
	EOF
}

# images writes to WORK/names, for sed, what the cluster calls each image. The tag depends on
# the content, so that no cluster uses an older image. An archive is what docker save makes.
images() {
	local arch layer known config tag ref path from
	[ -n "${E2E_LOAD:-}" ] ||
		fail 'E2E_LOAD is not set: give a command that loads an image; for kind: kind load image-archive "$ARCHIVE"'
	arch=$(kubectl get nodes -o jsonpath='{.items[0].status.nodeInfo.architecture}' || true)
	arch=${arch:-$(go env GOARCH)} # some users may not list nodes
	cd "$WORK" && mkdir -p root image && cd "$OLDPWD"
	make -s -C $root build GOARCH="$arch" OUT="$WORK/lameduck"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -ldflags='-s -w' \
		-o "$WORK/" ./$here/server ./$here/load
	files | while read -r path from; do
		install -D "$(cd "$WORK" && realpath "$from")" "$WORK/root/$path"
	done
	tar -C "$WORK/root" --sort=name --mtime=@0 --owner=0 --group=0 -cf "$WORK/image/layer.tar" .
	layer=$(sha256sum <"$WORK/image/layer.tar" | cut -c 1-64)
	configs | while read -r known config; do
		jq --arg arch "$arch" --arg layer "sha256:$layer" >"$WORK/image/config.json" <<<"$config" \
			'{os: "linux", architecture: $arch, config: ., rootfs: {type: "layers", diff_ids: [$layer]}}'
		tag=$(sha256sum <"$WORK/image/config.json" | cut -c 1-12)
		ref=${E2E_IMAGES:-localhost}/lameduck-e2e-${known//[\/:]/-}:$tag
		jq -n --arg ref "$ref" >"$WORK/image/manifest.json" \
			'[{Config: "config.json", RepoTags: [$ref], Layers: ["layer.tar"]}]'
		tar -C "$WORK/image" -cf "$WORK/image.tar" manifest.json config.json layer.tar
		ARCHIVE=$WORK/image.tar IMAGE=$ref sh -c "$E2E_LOAD" >&2 </dev/null
		echo "s#\(image: ['\"]\?\|reference: \"\)$known\b#\1$ref#"
	done >"$WORK/names"
}

# renamed puts the cluster's names into a manifest.
renamed() {
	local text
	text=$(sed -f "$WORK/names")
	! grep -E '^ *(- )?image: ' <<<"$text" | grep -v /lameduck-e2e- >&2 || fail "no such image was built"
	echo "$text"
}

# open makes a namespace with a Service called lameduck:
# Kubernetes gives all pods variables of that Service, with names like lameduck's own.
open() {
	NAMESPACE=lameduck-e2e-$(date +%s)-$$
	kubectl create namespace "$NAMESPACE" >&2
	echo "$NAMESPACE"
	kube create service clusterip lameduck --tcp=80 >&2
	until_true "the namespace's service account" kube get serviceaccount default >/dev/null 2>&1
}

close() { kubectl delete namespace "$NAMESPACE" $timeout >&2; }

# ready waits until all pods are of the newest revision and available, and else says what
# containers wait for.
ready() {
	kube rollout status "$deployment" $timeout >&2 ||
		{ kube get pods -o jsonpath='{.items[*].status..waiting}' >&2; return 1; }
}

# policy prints fleet/policy.yaml for the experiment's namespace and no other, in the newest
# version of the API group that the cluster serves.
policy() {
	local version group=admissionregistration.k8s.io
	local only="    namespaceSelector:\n      matchLabels: {kubernetes.io/metadata.name: $NAMESPACE}"
	for version in v1 v1beta1; do
		if kubectl get --raw /apis/$group/$version 2>/dev/null | grep -q '"MutatingAdmissionPolicy"'; then
			renamed <$root/docs/examples/kubernetes/fleet/policy.yaml | sed "
				s|$group/v1\$|$group/$version|
				s|lameduck-hold|$NAMESPACE|
				s|^    objectSelector:|$only\n&|"
			return
		fi
	done
	echo "the cluster has no MutatingAdmissionPolicy" >&2
	return 1
}

# changes reports whether the policy changes a pod.
changes() {
	local pod sleep='lifecycle: {preStop: {sleep: {seconds: 5}}}'
	pod=$(sed "s/app: load/&, lameduck: hold/; s/^    args:.*/    $sleep/" $here/load.yaml | renamed)
	[ -n "$(kube create -f - --dry-run=server -o jsonpath='{.spec.initContainers[*].name}' <<<"$pod")" ]
}

# clear deletes a row's objects and kills the pods, without their holds, so that the next
# row's Service has only the next row's pods.
clear() {
	kube delete -f "$WORK/row.yaml" --ignore-not-found $timeout
	kube delete replicasets,pods --all --grace-period=1 $timeout
	[ "$POLICY" = false ] || kubectl delete --ignore-not-found -f "$WORK/policy.yaml"
} >&2

# tally prints the newest line of the load.
tally() { kube logs --tail=1 "$pod" 2>/dev/null || echo '{}'; }

# flows reports whether two seconds of requests have been answered. None may fail.
flows() {
	local now
	now=$(tally)
	jq -e '[.kinds // {} | to_entries[] | select(.key != "answered").value] | (add // 0) == 0' <<<"$now" >/dev/null ||
		fail "before the rollout: $now"
	jq -e ".settled > $((2 * RATE))" <<<"$now" >/dev/null
}

# settled waits until every request that has begun by now has ended, and prints the tally.
settled() {
	local old new now
	old=$(tally | jq '.sent // 0')
	newer() { new=$(tally | jq '.sent // 0') && [ "$new" -gt "$old" ]; }
	ended() { now=$(tally) && jq -e ".settled >= $new" <<<"$now" >/dev/null; }
	until_true "a new line of the load" newer
	until_true "the last answers" ended
	echo "$now"
}

# roll replaces all pods of the Deployment, follows the old pods to their ends, and prints
# their stops: the seconds from the deletion to the last container's end, and the
# termination messages.
roll() {
	local old watch log=$WORK/watch
	old=$(kube get pods --selector='app!=load' -o json | jq -c '[.items[].metadata.name]')
	timeout $patience kubectl --namespace="$NAMESPACE" get pods --selector='app!=load' -o json \
		--watch --output-watch-events >"$log" 2>/dev/null &
	watch=$!
	begun() { [ -s "$log" ]; }
	gone() {
		jq -se --argjson old "$old" '$old - [.[] | select(.type == "DELETED").object.metadata.name] == []' \
			"$log" >/dev/null 2>&1
	}
	until_true "the watch" begun
	kube rollout restart "$deployment" >&2
	until_true "the ends of the pods" gone
	kill $watch
	ready
	jq -sc --argjson old "$old" '
		def ended: .metadata.deletionTimestamp
			and (.status.containerStatuses // [] | length > 0 and all(.state.terminated));
		# From 1.35 on, the last events of a pod have a grace period of 0, and a later deletionTimestamp.
		def deleted: (.metadata.deletionTimestamp | fromdate) - .metadata.deletionGracePeriodSeconds;
		map(.object) as $seen | $old | map(. as $name | [$seen[] | select(.metadata.name == $name)]
			| (map(select(.metadata.deletionTimestamp) | deleted) | min) as $deleted | map(select(ended)) | last
			| if . == null then {took: 0, messages: []} else
				(.status.containerStatuses | map(.state.terminated)) as $ends
				| {took: (($ends | map(.finishedAt | fromdate) | max) - $deleted),
					messages: ($ends | map(.message // ""))}
			end)' "$log"
}

# play prints {"tally", "failed", "stops"}: the tally at the end, the failed requests of each
# rollout, and all stops; or {"reason"} where an OPTIONAL row is refused.
play() {
	local stops='[]' failed='[]' more text name address failures before=0 i
	if [ -d "$MANIFEST" ]; then kubectl kustomize "$MANIFEST"; else cat "$MANIFEST"; fi | renamed >"$WORK/row.yaml"
	name=$(sed -n '/^kind: Deployment/,/^spec:/s/.*name: \([a-z]*\).*/\1/p' "$WORK/row.yaml")
	deployment=deployment/$name
	trap clear EXIT
	begin() {
		kubectl label namespace "$NAMESPACE" --overwrite "pod-security.kubernetes.io/enforce=$LEVEL"
		if [ "$POLICY" = true ]; then
			policy >"$WORK/policy.yaml" && kubectl create -f "$WORK/policy.yaml" || return
			until_true "the policy" changes || return
		fi
		kube create -f "$WORK/row.yaml" && ready
	} >&2
	if ! (begin) 2>"$WORK/refused"; then
		cat "$WORK/refused" >&2
		[ "$OPTIONAL" = true ] || return 1
		jq -Rsc '{reason: .}' <"$WORK/refused"
		return
	fi
	address=$(kube get service "$name" -o jsonpath='{.spec.clusterIP}:{.spec.ports[0].port}')
	pod=$(sed "s/RATE/$RATE/; s/CONNS/$CONNS/; s/ADDRESS/$address/" $here/load.yaml |
		renamed | kube create -f - -o name)
	until_true "the load" flows
	for ((i = 0; i < ROLLOUTS; i++)); do
		more=$(roll)
		stops=$(jq -c --argjson more "$more" '. + $more' <<<"$stops")
		text=$(settled)
		failures=$(jq '[.kinds | to_entries[] | select(.key != "answered").value] | add // 0' <<<"$text")
		failed=$(jq -c ". + [$((failures - before))]" <<<"$failed")
		before=$failures
	done
	jq -nc --argjson stops "$stops" --argjson failed "$failed" --argjson tally "$text" '{$tally, $failed, $stops}'
}

"$1"
