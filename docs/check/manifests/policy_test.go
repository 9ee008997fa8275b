package manifests

import (
	"context"
	"reflect"
	"slices"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

// thePolicy returns the policy of policy.yaml.
func thePolicy(t *testing.T) *admissionregistration.MutatingAdmissionPolicy {
	t.Helper()
	list := objects(t, read(t, "fleet/policy.yaml"))
	p, binding := list[0].(*admissionregistration.MutatingAdmissionPolicy), list[1].(*admissionregistration.MutatingAdmissionPolicyBinding)
	if binding.Spec.PolicyName != p.Name {
		t.Errorf("the binding binds %s", binding.Spec.PolicyName)
	}
	return p
}

// admit changes a new pod as the API server does, with the API server's own code: the
// conditions, the variables, the patch.
func admit(t *testing.T, spec *admissionregistration.MutatingAdmissionPolicySpec, pod *core.Pod) *core.Pod {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for _, v := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	var conditions []cel.ExpressionAccessor
	for i := range spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&spec.MatchConditions[i]))
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, options, environment.StoredExpressions), spec.FailurePolicy, "policy", "mutate", "policy")

	scheme := runtime.NewScheme()
	core.AddToScheme(scheme)
	kind, resource := core.SchemeGroupVersion.WithKind("Pod"), core.SchemeGroupVersion.WithResource("pods")
	attributes := &admission.VersionedAttributes{
		Attributes:         admission.NewAttributesRecord(pod, nil, kind, "default", pod.Name, resource, "", admission.Create, &meta.CreateOptions{}, false, nil),
		VersionedKind:      kind,
		VersionedObject:    admission.NewLazyObject(pod),
		VersionedOldObject: admission.NewLazyObject(nil),
	}
	if match := matcher.Match(context.Background(), attributes, nil, nil); match.Error != nil {
		t.Fatal(match.Error)
	} else if !match.Matches {
		return pod
	}
	options.HasPatchTypes = true
	for _, m := range spec.Mutations {
		evaluator := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, options, environment.StoredExpressions)
		got, err := patch.NewJSONPatcher(evaluator).Patch(compiler.CreateContext(context.Background()), patch.Request{
			MatchedResource:     resource,
			VersionedAttributes: attributes,
			ObjectInterfaces:    admission.NewObjectInterfacesFromScheme(scheme),
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		pod = got.(*core.Pod)
		attributes.VersionedObject = admission.NewLazyObject(pod)
	}
	return pod
}

// web returns the pod of the fleet's example, which the policy changes.
func web(t *testing.T) (pod *core.Pod) {
	t.Helper()
	for _, object := range objects(t, read(t, "fleet/example/web.yaml")) {
		if found := podOf(object); found != nil {
			pod = found
		}
	}
	return pod
}

func sleep(words ...string) *core.Lifecycle {
	return &core.Lifecycle{PreStop: &core.LifecycleHandler{Exec: &core.ExecAction{Command: words}}}
}

// changed are changes to the example that leave work for the policy.
var changed = map[string]func(*core.Pod){
	"as it is": func(*core.Pod) {},
	"exec":     func(p *core.Pod) { p.Spec.Containers[0].Lifecycle = sleep("sleep", "15") },
	"sh":       func(p *core.Pod) { p.Spec.Containers[0].Lifecycle = sleep("/bin/sh", "-c", "sleep 15") },
	"no grace": func(p *core.Pod) { p.Spec.TerminationGracePeriodSeconds = nil },
	"bare":     func(p *core.Pod) { p.Spec.Volumes, p.Spec.Containers[0].VolumeMounts = nil, nil },
	"init": func(p *core.Pod) {
		p.Spec.InitContainers = []core.Container{*p.Spec.Containers[0].DeepCopy()}
		p.Spec.InitContainers[0].Name, p.Spec.InitContainers[0].Lifecycle = "migrate", nil
	},
	"annotation": func(p *core.Pod) { p.Annotations = map[string]string{"lameduck/delay": "12"} },
	"two": func(p *core.Pod) {
		p.Spec.Containers = append([]core.Container{*p.Spec.Containers[0].DeepCopy()}, p.Spec.Containers...)
		p.Spec.Containers[0].Name, p.Spec.Containers[0].Lifecycle = "first", nil
	},
}

// TestPolicy: the policy changes pods into pods that pass the checks of the manifests.
func TestPolicy(t *testing.T) {
	spec := &thePolicy(t).Spec
	for name, change := range changed {
		t.Run(name, func(t *testing.T) {
			pod := web(t)
			change(pod)
			was := pod.DeepCopy()
			got := admit(t, spec, pod)
			if !equality.Semantic.DeepEqual(was, pod) {
				t.Error("admit has changed its argument")
			}
			if got.Spec.TerminationGracePeriodSeconds == nil {
				got.Spec.TerminationGracePeriodSeconds = new(int64(30))
			}
			if n := len(got.Spec.InitContainers); n != len(was.Spec.InitContainers)+1 || got.Spec.InitContainers[0].Name != "lameduck" {
				t.Fatalf("%d init containers", n)
			}
			if name == "init" { // without the pod's own init container
				got.Spec.InitContainers = got.Spec.InitContainers[:1]
			}
			hardened(t, got)
			stops(t, got)
			last := got.Spec.Containers[len(got.Spec.Containers)-1]
			if hook := last.Lifecycle.PreStop; hook.Sleep != nil || (name == "annotation") != slices.Contains(hook.Exec.Command, "--delay=12") {
				t.Errorf("the hook is %+v", hook)
			}
			if again := admit(t, spec, got); !equality.Semantic.DeepEqual(again, got) {
				t.Error("a second admission changes the pod again")
			}
		})
	}
}

// TestPolicyLeavesAlone: the policy does not change pods whose preStop is more than a
// sleep, or none.
func TestPolicyLeavesAlone(t *testing.T) {
	spec := &thePolicy(t).Spec
	for name, lifecycle := range map[string]*core.Lifecycle{
		"none":              nil,
		"more than a sleep": sleep("sh", "-c", "nginx -s quit; sleep 15"),
		"post":              {PostStart: &core.LifecycleHandler{Exec: &core.ExecAction{Command: []string{"sleep", "1"}}}},
		"http":              {PreStop: &core.LifecycleHandler{HTTPGet: &core.HTTPGetAction{}}},
	} {
		pod := web(t)
		pod.Spec.Containers[0].Lifecycle = lifecycle
		if got := admit(t, spec, pod); !equality.Semantic.DeepEqual(got, pod) {
			t.Errorf("%s: the policy changes the pod: %+v", name, got)
		}
	}
}

// TestKyverno: Kyverno's policy equals the API server's.
func TestKyverno(t *testing.T) {
	var theirs struct {
		APIVersion, Kind string
		Metadata         meta.ObjectMeta
		Spec             struct {
			admissionregistration.MutatingAdmissionPolicySpec
			Autogen struct {
				PodControllers struct{ Controllers []string }
			}
			Evaluation struct{ Background struct{ Enabled bool } }
		}
	}
	if err := yaml.UnmarshalStrict(read(t, "fleet/kyverno.yaml"), &theirs); err != nil {
		t.Fatal(err)
	}
	ours := thePolicy(t).Spec
	ours.ReinvocationPolicy = ""
	if !reflect.DeepEqual(theirs.Spec.MutatingAdmissionPolicySpec, ours) {
		t.Errorf("Kyverno's is\n%+v\nthe API server's\n%+v", theirs.Spec.MutatingAdmissionPolicySpec, ours)
	}
}
