package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// readers are the contenders that are there.
func (r *readRig) readers() []reader {
	all := []reader{
		{name: plain, conns: manyConns},
		{name: plainFew, conns: fewConns},
		{name: ours, data: filepath.Join("db", "t"), command: func(endpoint, dir, mnt string) (*exec.Cmd, error) {
			return r.lakeCommand(endpoint, filepath.Join(dir, "state"), mnt), nil
		}},
		{name: "rclone", command: r.rclone("")},
		{name: "rclone-streams", streams: true, command: r.rclone("--vfs-read-chunk-streams=16 --vfs-read-chunk-size=4Mi")},
		{name: "s3fs", command: r.s3fs},
		{name: "mount-s3", command: r.mountS3},
		{name: "goofys", command: r.goofys("goofys", "")},
		{name: "geesefs", command: r.goofys("geesefs", "--memory-limit=1000")},
	}
	var there []reader
	for _, who := range all {
		if !r.o.wanted(who.name) {
			continue
		}
		if who.conns == 0 && who.name != ours {
			path := peer(strings.TrimSuffix(who.name, "-streams"))
			if path == "" {
				say("%s is not there", who.name)
				continue
			}
			who.version = peerVersion(path)
		}
		there = append(there, who)
	}
	return there
}

// peer is the program of a name: built into .cache, or the machine's own.
func peer(name string) string {
	if path, err := filepath.Abs(filepath.Join(".cache", "peers", name)); err == nil {
		if _, err = os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// peerVersion is the first line of what a program says of itself.
func peerVersion(path string) string {
	out, err := exec.Command(path, "--version").CombinedOutput() //nolint:noctx // prints and ends
	line, _, _ := strings.Cut(string(out), "\n")
	if err != nil {
		return filepath.Base(path)
	}
	return strings.TrimSpace(line)
}

// mount is a command that has the store's credentials.
func (r *readRig) mount(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(peer(name), args...) //nolint:noctx // ends with the bench
	cmd.Env = slices.Concat(environ(), r.server.Env())
	return cmd
}

func (r *readRig) rclone(flags string) func(endpoint, dir, mnt string) (*exec.Cmd, error) {
	return func(endpoint, dir, mnt string) (*exec.Cmd, error) {
		args := []string{"mount", "--quiet", "--use-server-modtime", "--config", filepath.Join(dir, "none"), "--cache-dir", dir}
		args = append(append(args, strings.Fields(flags)...), "b:"+benchBucket+"/"+tableKey, mnt)
		cmd := r.mount("rclone", args...)
		cmd.Env = append(cmd.Env, "RCLONE_CONFIG_B_TYPE=s3", "RCLONE_CONFIG_B_PROVIDER=Other", "RCLONE_CONFIG_B_ENV_AUTH=true",
			"RCLONE_CONFIG_B_FORCE_PATH_STYLE=true", "RCLONE_CONFIG_B_REGION="+r.server.Region, "RCLONE_CONFIG_B_ENDPOINT="+endpoint)
		return cmd, nil
	}
}

func (r *readRig) s3fs(endpoint, dir, mnt string) (*exec.Cmd, error) {
	passwd := filepath.Join(dir, "passwd")
	if err := os.WriteFile(passwd, []byte(r.server.Access+":"+r.server.Secret+"\n"), 0o600); err != nil {
		return nil, err
	}
	return r.mount("s3fs", benchBucket+":/"+strings.TrimSuffix(tableKey, "/"), mnt, "-f", "-o", "passwd_file="+passwd, "-o", "url="+endpoint,
		"-o", "use_path_request_style", "-o", "endpoint="+r.server.Region, "-o", "dbglevel=crit", "-o", "tmpdir="+dir,
		"-o", "max_stat_cache_size=200000", "-o", "parallel_count=16"), nil
}

func (r *readRig) mountS3(endpoint, _, mnt string) (*exec.Cmd, error) {
	return r.mount("mount-s3", benchBucket, mnt, "--foreground", "--prefix", tableKey, "--endpoint-url", endpoint, "--force-path-style",
		"--region", r.server.Region, "--allow-delete", "--allow-overwrite"), nil
}

func (r *readRig) goofys(name, flags string) func(endpoint, dir, mnt string) (*exec.Cmd, error) {
	return func(endpoint, _, mnt string) (*exec.Cmd, error) {
		args := append([]string{"-f", "--endpoint", endpoint, "--region", r.server.Region}, strings.Fields(flags)...)
		return r.mount(name, append(args, benchBucket+":"+strings.TrimSuffix(tableKey, "/"), mnt)...), nil
	}
}
