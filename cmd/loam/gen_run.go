package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"loam/gen/plan"
	"loam/gen/show"
)

func newGenRun() *cobra.Command {
	var view viewFlags
	var keep bool
	cmd := &cobra.Command{
		Use:   "run FILE.yaml",
		Short: "Send the streams that a file describes",
		Long: `Run sends several streams at once, each with its own template, sizes, rate and
count. A YAML file describes them:

  interface: eth0
  method: ring
  queues: 1
  rx: eth1              # receive there, too, and report losses
  streams:
    - name: voice
      template: eth; ip dst=10.0.0.2; udp dport=5060
      size: 64-128
      rate: 10kpps
      flows: 10
      vary:
        ip.src: 10.1.0.0/16
    - name: bulk
      template: eth; vlan id=7; ip6 dst=2001:db8::2; tcp flags=A
      size: imix:128=7,594=4,1518=1
      rate: 1Gbps
      count: 1000000
  steps:                # or time: 30s
    - time: 10s
    - time: 10s
      scale: 50%        # of the streams' rates

Templates, sizes and rates are written as for "loam gen". Further fields of the file are
batch, float, next-hop, qdisc, plain, leave-checksum, patience, public and seed. Further
fields of a stream are spacing and bare. An unknown field is an error, which names its line.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Sprintf("one file is wanted, and %d are given", len(args)), "say loam gen run FILE.yaml"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPlan(args[0])
			if err != nil {
				return err
			}
			p.Control = view.control
			return view.watch(cmd, func(ctx context.Context, v show.View) (show.Result, error) {
				r, err := sendAndReceive(ctx, p.Config, p.RX, keep, v)
				return r, inFileTerms(err)
			})
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&keep, "keep-privileges", false, "stay root after set-up")
	view.register(cmd)
	view.registerControl(cmd)
	return cmd
}

// readPlan reads and parses the file that describes a run.
func readPlan(name string) (*plan.Plan, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &usageError{err.Error(), "give a file that can be read"}
	}
	defer f.Close()
	p, err := plan.Read(f)
	if err != nil {
		return nil, &usageError{name + ": " + err.Error(), "see loam gen run --help"}
	}
	for i := range p.Streams {
		if s := &p.Streams[i]; s.Seed == 0 {
			s.Seed = rand.Uint64()
		}
	}
	return p, nil
}

// fileTerms replaces the names of flags in error messages by the names of the fields in the file.
var fileTerms = strings.NewReplacer("--dst-mac", "next-hop", "--src", "ip.src", "--public", "public: true", "--rate", "rate",
	"--qdisc", "qdisc", "--plain", "plain", "--queues", "queues", "--size", "size", "--patience", "patience")

// inFileTerms rewrites the message of a usageError so that it names the fields of the file instead of flags.
func inFileTerms(err error) error {
	var u *usageError
	if errors.As(err, &u) {
		return &usageError{fileTerms.Replace(u.wrong), fileTerms.Replace(u.do)}
	}
	return err
}
