package manifests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// variable is a variable of a policy.
type variable admissionregistration.Variable

func (v variable) GetName() string            { return v.Name }
func (v variable) GetExpression() string      { return v.Expression }
func (v variable) ReturnTypes() []*types.Type { return []*types.Type{types.AnyType, types.DynType} }

// applied returns what the API server makes of a new pod by a policy: the calls are those of its
// admission plugin. A pod that does not match is returned as it is.
func applied(t *testing.T, policy string, pod *core.Pod) *core.Pod {
	t.Helper()
	spec := must(Decode(read(policy)))[0].(*admissionregistration.MutatingAdmissionPolicy).Spec
	compiler := must(cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())))
	options := cel.OptionalVariableDeclarations{}
	for _, v := range spec.Variables {
		result := compiler.CompileAndStoreVariable(variable(v), options, environment.StoredExpressions)
		if result.Error != nil {
			t.Fatal(v.Name, result.Error)
		}
	}
	var conditions []cel.ExpressionAccessor
	for i := range spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	scheme := runtime.NewScheme()
	if err := core.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := admission.NewObjectInterfacesFromScheme(scheme)
	kind, resource := core.SchemeGroupVersion.WithKind("Pod"), core.SchemeGroupVersion.WithResource("pods")
	attributes := must(admission.NewVersionedAttributes(admission.NewAttributesRecord(pod, nil, kind, "", pod.Name,
		resource, "", admission.Create, nil, false, nil), kind, objects))
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, options, environment.StoredExpressions),
		spec.FailurePolicy, "policy", "mutate", policy)
	match := matcher.Match(context.Background(), attributes, nil, nil)
	if match.Error != nil {
		t.Fatal(match.Error)
	}
	if !match.Matches {
		return pod
	}
	options.HasPatchTypes = true
	condition := &patch.JSONPatchCondition{Expression: spec.Mutations[0].JSONPatch.Expression}
	patcher := patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(condition, options, environment.StoredExpressions))
	request := patch.Request{MatchedResource: resource, VersionedAttributes: attributes, ObjectInterfaces: objects}
	ctx := compiler.CreateContext(context.Background())
	return must(patcher.Patch(ctx, request, celconfig.RuntimeCELCostBudget)).(*core.Pod)
}

// podOf returns a pod with fields in YAML.
func podOf(fields string) *core.Pod {
	return must(Decode([]byte("--- {apiVersion: v1, kind: Pod, " + fields + "}")))[0].(*core.Pod)
}

// hooked are a pod, its containers, and the hooks that they get; "-" is none.
const hooked = `
- | {name: a, PORT} | a: hold --grace-period=30
- | {name: a, PORT, VOLUME, START}, {name: b} | a: hold --grace-period=30
terminationGracePeriodSeconds: 90 | {name: a, SLEEP} | a: hold --grace-period=90 --delay=45
- | {name: a, SLEEP} | a: hold --grace-period=56 --delay=45
- | {name: a}, {name: b, HOOK[sh, -c, sleep 5]END} | b: hold --grace-period=30 --delay=5
- | {name: a, HOOK[/bin/sleep, 45.5s]END} | a: hold --grace-period=57 --delay=45.5
- | {name: a, SLEEP}, {name: b, PORT} | a: hold --grace-period=56 --delay=45, b: hold --grace-period=56
- | {name: a, PORT}, {name: b, PORT, SLEEP} | b: hold --grace-period=56 --delay=45
}, metadata: {annotations: {lameduck/delay: 10s} | {name: a, SLEEP} | a: hold --grace-period=56 --delay=10s
- | {name: a} | -
- | {name: a, PORT}, {name: b, PORT} | -
- | {name: a, PORT, HOOK[nginx, -s, quit]END} | -
- | {name: a, PORT, lifecycle: {preStop: {httpGet: {port: 80}}}} | -
- | {name: a, HOOK[sh, -c, sleep 5; nginx -s quit]END} | -
initContainers: [{name: lameduck}] | {name: a, SLEEP} | -
- | {name: a, PORT}, {name: lameduck} | -
volumes: [{name: lameduck, emptyDir: {}}] | {name: a, PORT} | -
volumes: [{name: x, emptyDir: {}}] | {name: a, PORT} | a: hold --grace-period=30
volumes: [{name: x, emptyDir: {}}] | {name: a, PORT, MOUNT/opt/lameduck}]} | -
volumes: [{name: x, emptyDir: {}}] | {name: a, PORT}, {name: b, MOUNT/opt/lameduck/}]} | -
volumes: [{name: x, emptyDir: {}}] | {name: a, PORT, MOUNT/opt/lameducks}]} | a: hold --grace-period=30
`

// TestHoldPolicy: which containers get the hook, with which words. What is left alone is not
// changed at all.
func TestHoldPolicy(t *testing.T) {
	words := strings.NewReplacer("SLEEP", "lifecycle: {preStop: {sleep: {seconds: 45}}}",
		"START", "lifecycle: {postStart: {sleep: {seconds: 1}}}", "HOOK", "lifecycle: {preStop: {exec: {command: ", "END", "}}}",
		"PORT", "ports: [{containerPort: 80}]", "MOUNT", "volumeMounts: [{name: x, mountPath: ",
		"VOLUME", "volumeMounts: [{name: x, mountPath: /x}]")
	var pods core.PodList
	alone := ""
	for i, line := range strings.Split(strings.TrimSpace(words.Replace(hooked)), "\n") {
		cells := strings.Split(line, " | ")
		want := strings.Trim(cells[2], "-")
		text := fmt.Sprintf("spec: {containers: [%s], %s}", cells[1], strings.Trim(cells[0], "-"))
		before := podOf(text)
		before.Namespace, before.Name = "default", fmt.Sprint("pod-", i)
		got := applied(t, "fleet/policy.yaml", before.DeepCopy())
		pods.Items = append(pods.Items, *got)
		var hooks []string
		for i, c := range got.Spec.Containers {
			if len(c.VolumeMounts) == len(before.Spec.Containers[i].VolumeMounts) {
				continue
			}
			mount := c.VolumeMounts[len(c.VolumeMounts)-1].MountPath
			words := strings.Join(c.Lifecycle.PreStop.Exec.Command, " ")
			hooks = append(hooks, c.Name+": "+strings.TrimPrefix(words, mount+"/lameduck "))
			if c.Lifecycle.PreStop.Sleep != nil {
				t.Errorf("%s: a hook of two kinds", text)
			}
		}
		if got := strings.Join(hooks, ", "); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", text, got, want)
		}
		if want == "" {
			if before.Spec.InitContainers == nil {
				alone += fmt.Sprintf("default/pod-%d\n", i)
			}
			wantSame(t, got.Spec, before.Spec)
			continue
		}
		grace := fmt.Sprint(*got.Spec.TerminationGracePeriodSeconds)
		if !strings.Contains(want, "--grace-period="+grace) || got.Spec.InitContainers[0].Name != "lameduck" ||
			!slices.ContainsFunc(got.Spec.Volumes, func(v core.Volume) bool { return v.Name == "lameduck" }) {
			t.Errorf("%s: %+v", text, got.Spec)
		}
	}
	page := string(read("../../kubernetes.md"))
	query := regexp.MustCompile(`-l lameduck=hold -o json \| (jq .*)`).FindStringSubmatch(page)
	if query == nil {
		t.Fatal("docs/kubernetes.md does not list pods")
	}
	jq := exec.Command("sh", "-c", query[1])
	jq.Stdin = bytes.NewReader(must(json.Marshal(pods)))
	if out, err := jq.CombinedOutput(); string(out) != alone {
		t.Errorf("the query lists\n%s\nwant\n%s%v", out, alone, err)
	}
}

// TestWatchPolicy: the policy adds the sidecar that the component adds, and no more.
func TestWatchPolicy(t *testing.T) {
	sidecar := pod(t, read("fleet/component/watch.yaml")).InitContainers[0]
	before := podOf("spec: {containers: [{name: a}]}")
	want := before.DeepCopy()
	want.Spec.InitContainers = []core.Container{sidecar}
	wantSame(t, applied(t, "fleet/watch.yaml", before).Spec, want.Spec)
	wantSame(t, applied(t, "fleet/watch.yaml", want).Spec, want.Spec)
	clash := podOf("spec: {containers: [{name: lameduck-watch}]}")
	wantSame(t, applied(t, "fleet/watch.yaml", clash).Spec, clash.Spec)
}

// TestBothPolicies: a pod that holds is measured too, with the grace period that the hold has given it.
func TestBothPolicies(t *testing.T) {
	pod := podOf("metadata: {labels: {lameduck: hold}}, " +
		"spec: {containers: [{name: a, lifecycle: {preStop: {sleep: {seconds: 45}}}}]}")
	got := applied(t, "fleet/watch.yaml", applied(t, "fleet/policy.yaml", pod)).Spec
	var names []string
	for _, c := range got.InitContainers {
		names = append(names, c.Name)
	}
	command := got.InitContainers[0].Command
	if strings.Join(names, " ") != "lameduck-watch lameduck" || command[len(command)-1] != "--grace-period=56" {
		t.Errorf("%v %v", names, command)
	}
}
