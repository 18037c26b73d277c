package plan

import (
	"loam/test/bench/cell"
	"loam/test/bench/guest"
	"loam/test/bench/subject"
)

// Headings of the tables about a whole program in the report.
const (
	OnQ35     = "In a virtual machine, q35"
	OnMicroVM = "In a virtual machine, microvm"
	OnTwo     = "In a virtual machine with two CPUs"
	ByGateway = "As a process, through the gateway"
	ByWire    = "As a process, on a tap"
)

var (
	onKernel = []string{subject.Loam, subject.Linux}
	onHost   = []string{subject.Loam, subject.LoamRelay, subject.Linux, subject.LinuxProxy}
	loamOnly = []string{subject.Loam}
)

// GuestTests returns all measurements of a whole program.
func GuestTests() []Test {
	return []Test{
		{"guest/q35", OnQ35, onKernel, cell.Spec{Place: cell.Machine, Model: guest.Q35, CPUs: 1}, machineRows()},
		{"guest/microvm", OnMicroVM, loamOnly, cell.Spec{Place: cell.Machine, Model: guest.MicroVM, CPUs: 1}, withoutAims(machineRows())},
		{"guest/two", OnTwo, onKernel, cell.Spec{Place: cell.Machine, Model: guest.Q35, CPUs: 2}, machineRows()},
		{"process/gateway", ByGateway, onHost, cell.Spec{Place: cell.Gateway}, processRows()},
		{"process/wire", ByWire, onKernel, cell.Spec{Place: cell.Wire}, processRows()},
	}
}

// programRows returns the rows that every place has. requests and writes are the ratios to Linux's figures that Loam
// should reach, for requests and for writes.
func programRows(requests, writes float64) []Row {
	return []Row{
		{Title: "requests, 1 connection", Sample: cell.OneClient, Unit: "per s", Better: Higher, Aim: &Aim{Ratio: requests}, Peer: subject.Linux},
		{Title: "requests, 16 connections", Sample: cell.ManyClients, Unit: "per s", Better: Higher, Aim: &Aim{Ratio: requests}, Peer: subject.Linux},
		{Title: "syscall.Write to /dev/null", Sample: cell.SyscallWrite, Unit: "ns", Better: Lower, Aim: &Aim{Ratio: writes}, Peer: subject.Linux},
		{Title: "os.File.Write to /dev/null", Sample: cell.FileWrite, Unit: "ns", Better: Lower, Aim: &Aim{Ratio: writes}, Peer: subject.Linux},
	}
}

// withoutAims returns the rows without aims and peers, for tests that only run on Loam.
func withoutAims(rows []Row) []Row {
	for i := range rows {
		rows[i].Aim, rows[i].Peer = nil, ""
	}
	return rows
}

func processRows() []Row {
	first := Row{Title: "time to the first answer", Sample: cell.FirstAnswer, Unit: "ms", Better: Lower, Peer: subject.Linux}
	return append([]Row{first}, programRows(1, 20)...)
}

func machineRows() []Row {
	first := Row{Title: "time to the first answer", Sample: cell.FirstAnswer, Unit: "ms", Better: Lower, Aim: &Aim{Ratio: 10}, Peer: subject.Linux}
	return append(append([]Row{first,
		{Title: "QEMU's CPU time until the first answer", Sample: cell.FirstCPU, Unit: "ms", Better: Lower, Peer: subject.Linux},
		{Title: "wait for a host CPU until the first answer", Sample: cell.FirstWait, Unit: "ms", Better: Lower, Peer: subject.Linux},
	}, programRows(2, 10)...),
		Row{Title: "QEMU's CPU time for a request, 1 connection", Sample: cell.OneCPU, Unit: "µs", Better: Lower, Peer: subject.Linux},
		Row{Title: "QEMU's CPU time for a request, 16 connections", Sample: cell.ManyCPU, Unit: "µs", Better: Lower, Peer: subject.Linux},
		Row{Title: "an HTTPS upload", Sample: cell.Upload, Unit: "MB/s", Better: Higher, Aim: equal, Peer: subject.Linux},
		Row{Title: "QEMU's CPU time for a megabyte of an HTTPS upload", Sample: cell.UploadCPU, Unit: "ms", Better: Lower, Peer: subject.Linux},
		Row{Title: "memory in use, as the guest reports it", Sample: cell.UsedMemory, Unit: "MiB", Better: Lower, Aim: equal, Peer: subject.Linux},
		Row{Title: "resident memory of QEMU", Sample: cell.Resident, Unit: "MiB", Better: Lower, Aim: equal, Peer: subject.Linux},
		Row{Title: "size of the files that are booted, without the program", Sample: cell.Beyond, Unit: "MiB", Better: Lower, Aim: equal, Peer: subject.Linux})
}
