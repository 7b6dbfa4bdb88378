package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopTimeout is what a process has to end in after SIGTERM, before it is killed.
const stopTimeout = 30 * time.Second

// process is a child that runs, or ran.
type process struct {
	command *exec.Cmd
	ended   chan struct{} // closed when it has ended and is reaped
}

// startProcess starts the command, on the thread of the caller.
func startProcess(command *exec.Cmd) (*process, error) {
	if err := command.Start(); err != nil {
		return nil, err // it names the program
	}
	p := &process{command: command, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = command.Wait() // how it ended is in ProcessState
	}()
	return p, nil
}

// stop returns when the process has ended.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // one that has ended needs none
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		fmt.Fprintf(os.Stderr, "kube: killing %s, process %d: it did not end within %v\n", p.command.Path, p.command.Process.Pid, stopTimeout)
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

// exitCode is, for a process that has ended, what a shell would say.
func (p *process) exitCode() int {
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.command.ProcessState.ExitCode()
}
