package kernel

import (
	"slices"
	"strings"
	"testing"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// The program's first thread and its stack (System V ABI for AMD64, 3.4.1).

// modelModule is the physical address of the configuration in the model.
const modelModule = 3 << 20

// load loads a program with a configuration, and returns the record of its first thread.
func load(t *testing.T, config []byte) (*core, *thread.Thread) {
	t.Helper()
	m := newMachine(t, 1, 1)
	k, c := m.core, m.cpus[0].cpu
	k.threads.End(c.current) // the thread that the model starts with
	c.current = thread.None
	if len(config) > 0 {
		k.machine.Module = boot.Range{Start: modelModule, End: modelModule + uint64(len(config))}
		copy(k.physicalAt(modelModule, uint64(len(config))), config)
	}
	k.loadProgram(c)
	return k, k.threads.At(c.current)
}

// textAt returns the string at an address.
func textAt(addr uint64) string {
	n := 0
	for bytesAt(addr, n+1)[n] != 0 {
		n++
	}
	return string(bytesAt(addr, n))
}

// words reads the list of strings at an address, and returns the address behind its end.
func words(at uint64) (list []string, next uint64) {
	for ; *word(at) != 0; at += 8 {
		list = append(list, textAt(*word(at)))
	}
	return list, at + 8
}

func TestInitialStack(t *testing.T) {
	for _, c := range []struct{ args, env []string }{
		{[]string{"program"}, nil},
		{[]string{"/bin/program", "-v", "", "last"}, []string{"A=1", "", "LONG=" + strings.Repeat("x", 5000)}},
		{nil, []string{"A=1"}},
		{nil, nil},
		{slices.Repeat([]string{"argument"}, 3000), slices.Repeat([]string{"NAME=value"}, 3000)},
	} {
		config, err := boot.Config{Args: c.args, Env: c.env}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(config) == 0 {
			config = []byte("?\x00") // a word of another kind
		}
		k, th := load(t, config)
		f := frameOf(th.Page)
		if f.SP%16 != 0 {
			t.Errorf("the stack pointer is %#x", f.SP)
		}
		if argc := *word(f.SP); argc != uint64(len(c.args)) {
			t.Errorf("%d arguments, want %d", argc, len(c.args))
		}
		args, at := words(f.SP + 8)
		env, at := words(at)
		if !slices.Equal(args, c.args) || !slices.Equal(env, c.env) {
			t.Errorf("arguments %.100q and environment %.100q", args, env)
		}
		auxiliary := map[uint64]uint64{}
		for ; *word(at) != auxNull; at += 16 {
			auxiliary[*word(at)] = *word(at + 8)
		}
		if auxiliary[auxPageSize] != pageSize || auxiliary[auxSecure] != 0 || len(auxiliary) != 3 {
			t.Errorf("auxiliary vector %v", auxiliary)
		}
		seed := auxiliary[auxRandom]
		if *word(seed) == 0 || *word(seed) == *word(seed + 8) {
			t.Errorf("AT_RANDOM: %#x, %#x", *word(seed), *word(seed + 8))
		}
		checkStackPages(t, k, f.SP, seed+16)
	}
}

// checkStackPages checks that the stack from sp to end is mapped, with room below it and a gap below that.
func checkStackPages(t *testing.T, k *core, sp, end uint64) {
	t.Helper()
	for va := sp - stackSize; va < end; va += pageSize {
		if entry, _ := k.tables.Lookup(va); entry&(amd64.PagePresent|amd64.PageWrite) != amd64.PagePresent|amd64.PageWrite {
			t.Fatalf("the page of the stack at %#x has the entry %#x", va, entry)
		}
	}
	region, _ := k.dynamic.Find(sp)
	gap, ok := k.dynamic.Find(region.Start - 1)
	if !ok || gap.Rights != 0 || gap.End-gap.Start < stackGap {
		t.Errorf("below the stack is %+v", gap)
	}
}

// The first thread starts at the entry point, with interrupts enabled, and with the signals that arrived before it.
func TestFirstThread(t *testing.T) {
	entries.Program = 0x7777
	defer func() { entries.Program = 0 }()
	m := newMachine(t, 1, 1)
	k, c := m.core, m.cpus[0].cpu
	k.threads.End(c.current)
	k.machine.Module = boot.Range{Start: modelModule, End: modelModule + 4}
	copy(k.physicalAt(modelModule, 4), "ax\x00")
	k.earlySignals = uint64(signal.Of(15))
	k.loadProgram(c)
	th := k.threads.At(c.current)
	f := frameOf(th.Page)
	if f.IP != 0x7777 || f.Flags != amd64.FlagFixed|amd64.FlagInterrupt || f.CS != amd64.CodeSelector || f.SS != amd64.DataSelector {
		t.Errorf("%+v", *f)
	}
	if th.Pending != uint64(signal.Of(15)) || k.earlySignals != 0 || th.State != thread.Running {
		t.Errorf("pending %#x, early %#x, state %d", th.Pending, k.earlySignals, th.State)
	}
}

// The first thread is named like the program's file, in 15 bytes at most.
func TestProgramName(t *testing.T) {
	for config, want := range map[string]string{
		"aprogram\x00": "program", "a/usr/bin/server\x00a-x\x00": "server", "eA=1\x00anamed\x00": "named", "a\x00": "", "eA=1\x00": "",
		"a/a/very-long-name-of-a-program\x00": "very-long-name-", "adir/\x00": "",
	} {
		_, th := load(t, []byte(config))
		if got, _, _ := strings.Cut(string(th.Name[:]), "\x00"); got != want {
			t.Errorf("%q: %q, want %q", config, got, want)
		}
	}
}

// A machine that the loam command has not started has the default configuration.
func TestDefaultConfig(t *testing.T) {
	m := newMachine(t, 1, 1)
	machineCore.window, machineCore.windowEnd = m.core.window, modelMemory
	defer func() { machineCore.window, machineCore.windowEnd = 0, 0 }()
	k, c := m.core, m.cpus[0].cpu
	k.threads.End(c.current)
	k.loadProgram(c)
	args, at := words(frameOf(k.threads.At(c.current).Page).SP + 8)
	env, _ := words(at)
	if !slices.Equal(args, []string{"program"}) || len(env) != 1 || !strings.HasPrefix(env[0], "LOAM_GUEST=host machine=yes\n") {
		t.Errorf("arguments %q, environment %q", args, env)
	}
}

// A configuration that does not fit into memory ends the machine with a reason.
func TestConfigTooLong(t *testing.T) {
	m := newMachine(t, 1, 1)
	k := m.core
	k.dynamic.Init(m.low&^(amd64.BigPageSize-1)+amd64.BigPageSize, m.low&^(amd64.BigPageSize-1)+2*amd64.BigPageSize)
	const size = 3 << 20
	k.machine.Module = boot.Range{Start: modelModule, End: modelModule + size}
	b := k.physicalAt(modelModule, size)
	for i := range b {
		b[i] = 'a'
	}
	b[size-1] = 0
	if status := m.ends(func() { k.loadProgram(m.cpus[0].cpu) }); status != statusFailed || !strings.Contains(string(m.output), string(badConfig)) {
		t.Errorf("status %d, output %q", status, m.output)
	}
}
