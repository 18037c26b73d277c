package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Flags that are passed to the go command: "loam run" and "loam build" pass flags of go build, and "loam test" passes
// flags of go test. They are registered like other flags, so that help and completion list them and mistakes are
// reported by loam. Only the go command interprets their values.

// goFlag is a flag of the go command.
type goFlag struct {
	name  string
	value string // description of the value for the help text; "": the value is optional
	help  string // "": passed on but hidden from the help
}

var goBuildFlags = []goFlag{
	{"tags", "LIST", "build with these tags"},
	{"ldflags", "FLAGS", "pass these flags to the linker, such as -X=main.version=v1"},

	{"asmflags", "FLAGS", ""}, {"gcflags", "FLAGS", ""}, {"mod", "MODE", ""}, {"modfile", "FILE", ""},
	{"pgo", "FILE", ""}, {"trimpath", "", ""},
}

var goTestFlags = append([]goFlag{
	{"run", "REGEXP", "run only tests and examples that match"},
	{"skip", "REGEXP", "do not run tests and examples that match"},
	{"v", "", "print every test"},
	{"short", "", "ask tests to be quick (testing.Short)"},
	{"json", "", "print as go tool test2json does, for programs"},
	{"count", "N", "run every test N times; with 1, results in the cache are not used"},
	{"failfast", "", "start no further tests after one has failed"},
	{"timeout", "DURATION", "end a test binary that runs longer (default 10m)"},
	{"parallel", "N", "run at most N parallel tests of a binary"},
	{"bench", "REGEXP", "run benchmarks that match"},
	{"benchtime", "DURATION", "run each benchmark for this time, or with Nx, N times"},
	{"benchmem", "", "print allocations of benchmarks"},
	{"list", "REGEXP", "list tests, and run none"},
	{"coverprofile", "FILE", "write which statements were run"},

	{"shuffle", "MODE", ""}, {"cpu", "LIST", ""}, {"fullpath", "", ""}, {"artifacts", "", ""},
	{"cover", "", ""}, {"covermode", "MODE", ""}, {"coverpkg", "LIST", ""}, {"outputdir", "DIR", ""},
	{"cpuprofile", "FILE", ""}, {"memprofile", "FILE", ""}, {"memprofilerate", "N", ""},
	{"blockprofile", "FILE", ""}, {"blockprofilerate", "N", ""},
	{"mutexprofile", "FILE", ""}, {"mutexprofilefraction", "N", ""}, {"trace", "FILE", ""},

	{"a", "", ""}, {"n", "", ""}, {"x", "", ""}, {"p", "N", ""}, {"work", "", ""}, {"modcacherw", "", ""},
}, goBuildFlags...)

// refusedBuildFlags are the flags of go build that are not supported, with the reason.
var refusedBuildFlags = map[string]string{
	"race": needsCgo, "msan": needsCgo, "asan": needsCgo,
	"overlay": ownOverlay,
}

// refusedTestFlags are the flags of go test that are not supported, with the reason.
var refusedTestFlags = map[string]string{
	"race": needsCgo, "msan": needsCgo, "asan": needsCgo,
	"overlay": ownOverlay,
	"vet":     "vet is not run here; go vet does",
	"c":       notAlone,
	"o":       notAlone,
	"exec":    "loam runs the test binaries",
	"fuzz":    noWorkers, "fuzztime": noWorkers, "fuzzminimizetime": noWorkers,
}

const (
	needsCgo   = "needs cgo, and programs on Loam have none; the go command has it"
	noWorkers  = "starts worker processes, which programs on Loam cannot; go test has it, and without it loam test runs the seeds"
	ownOverlay = "loam builds with an overlay of its own"
	notAlone   = "a test binary does not run alone; go test -c makes one for Linux"
)

// passing describes which flags of the go command a loam command passes on and which it refuses.
type passing struct {
	flags   []goFlag
	refused map[string]string // reason why a flag is refused, by name
}

var passingBy = map[string]passing{
	"run":   {goBuildFlags, refusedBuildFlags},
	"build": {goBuildFlags, refusedBuildFlags},
	"test":  {goTestFlags, refusedTestFlags},
}

// goFlags collects the flags of the go command in the order in which they were given.
type goFlags struct{ given []string }

// register adds the flags that a command passes on or refuses.
func (g *goFlags) register(command string, flags *pflag.FlagSet) {
	by := passingBy[command]
	for _, f := range by.flags {
		p := flags.VarPF(&passedFlag{f, g}, f.name, "", f.help)
		p.Hidden = f.help == ""
		if f.value == "" {
			p.NoOptDefVal = "true"
		}
	}
	for name, why := range by.refused {
		p := flags.VarPF(refusedFlag(why), name, "", "")
		p.Hidden, p.NoOptDefVal = true, "true"
	}
}

// passedFlag is the pflag.Value of a goFlag: setting it adds the flag to goFlags.
type passedFlag struct {
	flag goFlag
	to   *goFlags
}

func (p *passedFlag) String() string { return "" }

func (p *passedFlag) Set(value string) error {
	p.to.given = append(p.to.given, "-"+p.flag.name+"="+value)
	return nil
}

func (p *passedFlag) Type() string { return cmp.Or(p.flag.value, "bool") }

// refusedFlag is the pflag.Value of a flag that is not supported. Setting it is an error; the string is the reason.
type refusedFlag string

func (f refusedFlag) String() string   { return "" }
func (f refusedFlag) Set(string) error { return errors.New(string(f)) }
func (f refusedFlag) Type() string     { return "bool" }

// goStyle converts flags of the go command from one dash to two. For "loam test" it also inserts -- between -args and
// the arguments after it. As in go test, flag names of "loam test" may have the prefix "test.".
func goStyle(args []string) []string {
	if len(args) == 0 || passingBy[args[0]].flags == nil {
		return args
	}
	by, testing := passingBy[args[0]], args[0] == "test"
	out := args[:1:1]
	for i := 1; i < len(args); i++ {
		arg := args[i]
		name, isFlag := strings.CutPrefix(strings.TrimPrefix(arg, "-"), "-")
		if !isFlag {
			name, isFlag = strings.CutPrefix(arg, "-")
		}
		if testing && name == "args" && isFlag || arg == "--" {
			return append(append(out, "--"), args[i+1:]...)
		}
		if testing {
			name = strings.TrimPrefix(name, "test.")
		}
		known, given := by.find(name)
		if !isFlag || known == nil {
			out = append(out, arg)
			continue
		}
		out = append(out, "--"+name)
		if known.value != "" && !given && i+1 < len(args) { // the next argument is the value, even if it looks like a flag
			i++
			out = append(out, args[i])
		}
	}
	return out
}

// find returns the flag for an argument "name" or "name=value", or nil if there is no such flag. given reports whether
// the argument contains a value.
func (by passing) find(s string) (f *goFlag, given bool) {
	name, _, given := strings.Cut(s, "=")
	if i := slices.IndexFunc(by.flags, func(f goFlag) bool { return f.name == name }); i >= 0 {
		return &by.flags[i], given
	}
	if _, refused := by.refused[name]; refused {
		return &goFlag{name: name}, given
	}
	return nil, false
}
