// Package terminal is the line discipline of terminals: it edits, echoes and buffers what a person types, turns keys into
// signals, and processes what programs print. It behaves as Linux's N_TTY on a pseudo-terminal (termios(3), pty(7)).
//
// A Line is both directions of one terminal:
//
//	         Type ─▶ typed ─▶ (editing, signals) ─▶ input ─▶ Read
//	master                         │ echo                        programs
//	         Show ◀─ output ◀──────┴──────── (OPOST) ◀── Write
//
// The person who types is at the master end, which a terminal emulator or the loam command uses. Programs have the
// other end, the slave.
//
// A Line is a pure machine: it has no lock, no clock and does not wait. A call that finds no room or no data does less than
// it was asked for, and the caller waits. Signals that keys cause are collected until Signals takes them. Timed reads
// (VTIME), sessions and process groups are matters of the caller, package posix.
//
// Reading order: line.go, input.go, edit.go, echo.go, output.go, read.go, control.go.
package terminal
