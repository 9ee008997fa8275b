//go:build ignore

// Loki checks docs/examples/monitoring by the parsers of Loki, Prometheus and Grafana, and plays
// logs on standard input to the rules for Loki: "loki FOLDER". It prints the names of the alerts that find
// something. It is not part of the module, which would require all of Loki: see .ci/run.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/loki/v3/pkg/logql/syntax"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

func main() {
	log.SetFlags(0)
	folder := os.Args[1]
	lines := bytes.Split(bytes.TrimSpace(must(io.ReadAll(os.Stdin))), []byte("\n"))
	rules := must(os.ReadFile(filepath.Join(folder, "prometheus.yaml")))
	promQL := parser.NewParser(parser.Options{})
	if _, faults := rulefmt.Parse(rules, false, model.UTF8Validation, promQL, slog.Default()); len(faults) > 0 {
		log.Fatal(errors.Join(faults...))
	}
	var groups rulefmt.RuleGroups
	decoder := yaml.NewDecoder(bytes.NewReader(must(os.ReadFile(filepath.Join(folder, "loki.yaml")))))
	decoder.KnownFields(true)
	if err := decoder.Decode(&groups); err != nil {
		log.Fatal(err)
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if found(rule.Expr, lines) > 0 {
				fmt.Println(rule.Alert)
			}
		}
	}
	plugins.RegisterDefaultPlugins()
	var board dashboard.Dashboard
	text := must(os.ReadFile(filepath.Join(folder, "dashboard.json")))
	if err := board.UnmarshalJSONStrict(text); err != nil && err.Error() != "" { // never nil
		log.Fatal(err)
	}
	if err := errors.Join(json.Unmarshal(text, &board), board.Validate()); err != nil {
		log.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Panel.Targets {
			var query struct{ Expr string }
			if err := json.Unmarshal(must(json.Marshal(target)), &query); err != nil {
				log.Fatal(err)
			}
			found(strings.NewReplacer("$app", ".+", "$__auto", "1h").Replace(query.Expr), lines)
		}
	}
}

// found returns the number of lines that a query of Loki finds. A line on which it fails is fatal: one
// such line fails a query of metrics.
func found(query string, lines [][]byte) (n int) {
	parsed, err := syntax.ParseSampleExpr(query)
	if err != nil {
		log.Fatalf("%s: %v", query, err)
	}
	for _, extractor := range must(parsed.Extractors()) {
		stream := extractor.ForStream(labels.FromStrings("app", "web", "namespace", "default", "container", "web"))
		for _, line := range lines {
			samples, ok := stream.Process(0, line, labels.EmptyLabels())
			for _, sample := range samples {
				if fault := sample.Labels.Labels().Get("__error__"); ok && fault != "" {
					log.Fatalf("%s: %s: %s", query, fault, line)
				}
			}
			if ok {
				n++
			}
		}
	}
	return n
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
