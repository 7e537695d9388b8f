package tools_test

// What the store gets beyond a PUT for each version of a file, and why.
const (
	removes = "what was published is removed"
	renames = "what was published is renamed"
	copies  = "a copy within the lake is made by the store"
)

// shellTools are scripts of several steps, as people have them.
func shellTools() []tool {
	return []tool{
		{name: "shell redirections", script: `
echo one > a; keep; echo two >> a; keep; { echo three; echo four; } >> a; (echo five; /bin/true; echo six) > b
exec 3> c; echo seven >&3; /bin/true; echo eight >&3; exec 3>&-
: > empty; cat a b c > all; cat <<< here > doc
set -C; if echo no 2> "$OUT/err" > a; then exit 1; fi; set +C
seq 5 | while read -r n; do echo "$n" >> loop; keep; done
cat a b c empty all doc loop`},
		{name: "mktemp, mv", script: `f=$(mktemp -p .); echo t > "$f"; mv "$f" made; cat made`, random: `^tmp\.(\w{10})$`},
		{name: "cp, cp -r", script: `
cp "$OUT/in.txt" a; cp "$OUT/in.bin" b; cp -r "$OUT/tree" t; keep; cp "$OUT/in.bin" a
cp a "$OUT/back"; cp -r t "$OUT/tree.back"; cmp b a`},
		{name: "cp within", before: `cp "$OUT/in.txt" a; cp "$OUT/in.bin" b; cp -r "$OUT/tree" t`, more: copies, script: `cp a c; keep; cp b a; cp -r t u; cmp b a`},
		{name: "cp -a, cp -p", mtime: true, more: copies, script: `
cp -p "$OUT/in.txt" a; cp -a "$OUT/tree" t; cp -a t u; cp -p a b; cp -a u "$OUT/back"`},
		{name: "cp -u, cp -f, cp -n", before: `seed a; seed b 3; touch -d 2001-01-01 b`, script: `
cp -u "$OUT/in.txt" b; seed c 5; keep; cp -f "$OUT/in.txt" c; seed d 4; cp -n a d 2>/dev/null || true`},
		{name: "cp -b", before: `seed c 5`, script: `cp -b "$OUT/in.txt" c`},
		{name: "mv in", mtime: true, script: `mv "$OUT/in.txt" a; mv "$OUT/tree" t; ls "$OUT"`},
		{name: "mv within", more: renames, script: `
seed a; keep; mv a b; seed c 3; keep; mv c b; keep; mkdir d e; mv b d; keep; mv d/b e/b; seed f 4; keep; mv -n f e/b || true; mv e g; seed h; keep; mv -b h f`},
		{name: "mv out", mtime: true, more: removes, script: `
cp -p "$OUT/in.txt" a; keep; mv a "$OUT/moved"; cp -a "$OUT/tree" t; keep; mv t "$OUT/moved.tree"; ls`},
		{name: "rm, rmdir, mkdir", more: removes, script: `
mkdir -p a/b/c d; seed a/b/c/f; seed a/g; keep; rmdir d; rm a/g; if rmdir a 2>/dev/null; then exit 1; fi
rm -r a; mkdir -m 700 e; seed e/f; keep; exec 4< e/f; rm e/f; cat <&4; exec 4>&-; rmdir e; seed last 2; keep; rm -f gone last; mkdir kept`},
		{name: "install", mtime: true, script: `
install -m 640 -p "$OUT/in.txt" a; install -D -p -m 755 "$OUT/in.txt" d/e/f; install -d -m 700 g; touch -d 2020-01-01 d/e d g`},
		{name: "dd", script: `dd if="$OUT/in.bin" of=a bs=64k status=none; dd if=a of=b bs=1000 skip=3 count=5 status=none; dd if=/dev/zero of=sparse bs=1 count=1 seek=100000 status=none`},
		{name: "dd conv=notrunc", before: `cp "$OUT/in.bin" a; seed b 3`, script: `
printf XYZ | dd of=a bs=1 seek=1000000 conv=notrunc status=none; keep; printf END | dd of=a oflag=append conv=notrunc status=none; printf __ | dd of=b bs=1 seek=2 status=none`},
		{name: "dd conv=fsync", script: `dd if="$OUT/in.bin" of=a bs=64k conv=fsync status=none; dd if="$OUT/in.txt" of=b bs=512 oflag=dsync status=none; dd if="$OUT/in.txt" of=c conv=fdatasync status=none; sync c`},
		{name: "tee, tee -a", script: `seq 9 | tee a b; keep; seq 3 | tee -a a; seq 2 | tee b > c`},
		{name: "chmod, umask", script: `
seed a; chmod 600 a; seed b; chmod a+x b; umask 077; seed c; mkdir d; umask 022; chmod 400 c; tr a a < c > e; mkdir f; chmod 711 f`},
		{name: "find -delete, xargs", before: `cp -r "$OUT/tree" t`, more: removes, script: `
find . -type f | sort | xargs wc -c; find t -name 'one' -delete; find t -type d -empty; find t -size +1k -exec gzip -n {} \; ; grep -rc line t | sort`},
		{name: "flock", needs: "flock", script: `
for n in 1 2 3 4; do (for i in 1 2 3 4 5; do flock lock bash -c 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n'; keep; done); done; cat n`},
		{name: "flock, four at once", needs: "flock", varies: `^n$`, more: "a version for each turn", script: `
for n in 1 2 3 4; do (for i in 1 2 3 4 5; do flock lock bash -c 'n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n'; done) & done; wait; cat n`},
		{name: "ln, ln -s, mkfifo", script: `seed f; ln f g; ln -s f h; mkfifo p`, differs: "a file has one name, and there are no other kinds: EPERM"},
		{name: "awk, tr, cut > new", script: `seed a; awk '{print $2}' a > b; tr a-z A-Z < a > c; cut -d' ' -f2 a | paste - a > d`},
	}
}

// fileTools write one file, or some, once.
func fileTools() []tool {
	return []tool{
		{name: "cp over an old file", before: "seed f 9", script: `cp "$OUT/in.txt" f`},
		{name: "sort -o", before: "seed f", script: `sort -r -o f f`},
		{name: "shuf -o, uniq, tac", before: "seed a", script: `tac a > c; sort -u a c > d; uniq -c d e; shuf -o a --random-source="$OUT/in.bin" a`},
		{name: "sponge", needs: "sponge", before: "seed f", script: `sort -r f | sponge f`},
		{name: "split", script: `split -l 60 "$OUT/in.txt" part.; split -b 1M "$OUT/in.bin" bin.; cat bin.* | cmp - "$OUT/in.bin"`},
		{name: "csplit", script: `csplit -s -f cs. "$OUT/in.txt" 50 100`},
		{name: "truncate", before: `seed b; seed c; seed d`, script: `truncate -s 100000 a; truncate -s 10 b; truncate -s +5 c; truncate -s 0 d`},
		{name: "fallocate", needs: "fallocate", before: "seed f", script: `fallocate -l 65536 e; fallocate -l 65536 f`},
		{name: "fallocate -n", needs: "fallocate", before: "seed f", more: "no byte of it is new: the store copies it", script: `fallocate -n -l 65536 f`},
		{name: "touch", script: `touch a; test -e a; touch -c gone`},
		{name: "touch -d", before: "seed b; seed c", mtime: true, more: "it opens them as if to write", script: `
touch -d 2021-06-01T01:02:03.456 a; touch -d 1999-12-31 b; touch -r b c; touch -d 2010-10-10 c`},
		{name: "shred", needs: "shred", varies: "^f$", before: "seed f", more: "it syncs each of three passes", script: `shred f; wc -c < f`},
		{name: "shred -u", needs: "shred", varies: "^0+$|^[fg]$", before: "seed f; seed g", more: "it syncs each pass, renames the file to shorter names and removes it", script: `shred -u f; shred -n 1 -u g; ls`},
	}
}

// editTools write beside a file and rename, or write over it.
func editTools() []tool {
	const (
		skip   = ` --cmd 'set backupskip=' ` // by default vim backs nothing up below /tmp
		vi     = `vim -es -i NONE --cmd 'set nocp backupskip= `
		change = `' -c '%s/line/row/' -c wq f`
	)
	return []tool{
		{name: "sed -i", before: "seed f", script: `sed -i s/line/row/ f`, random: `^sed(\w{6})$`},
		{name: "sed -i.bak", before: "seed f", script: `sed -i.bak s/line/row/ f`, random: `^sed(\w{6})$`},
		{name: "perl -pi", needs: "perl", before: "seed f", script: `perl -pi -e s/line/row/ f`, random: `^XX(\w{6,8})$`},
		{name: "perl -pi.bak", needs: "perl", before: "seed f", script: `perl -pi.bak -e s/line/row/ f`, random: `^XX(\w{6,8})$`},
		{name: "gawk -i inplace", needs: "gawk", before: "seed f", script: `gawk -i inplace '{print NR, $0}' f`, random: `\.gawk\.(\w{6})$`},
		{name: "gawk -i inplace, with a backup", needs: "gawk", before: "seed f", script: `gawk -i inplace -v INPLACE_SUFFIX=.bak '{print $1}' f`, random: `\.gawk\.(\w{6})$`, differs: "its backup is a hard link; the file stays as it was"},
		{name: "vim", needs: "vim", before: "seed f; chmod 640 f", script: `vim -es` + skip + `-c '%s/line/row/' -c wq f`},
		{name: "vim, a new file", needs: "vim", script: `vim -es` + skip + `-c 'normal inew' -c wq new`},
		{name: "vim -u NONE", needs: "vim", before: "seed f", script: `vim -es -u NONE` + skip + `-c '%s/line/row/' -c wq f`},
		{name: "vim, swap file, backup by rename", needs: "vim", before: "seed f", script: vi + `swapfile writebackup nobackup backupcopy=no` + change},
		{name: "vim, backup kept", needs: "vim", before: "seed f", script: vi + `swapfile backup` + change},
		{name: "vim, no swap, no backup", needs: "vim", before: "seed f", script: vi + `noswapfile nobackup nowritebackup` + change},
		{name: "ex", needs: "ex", before: "seed f", script: `printf '%%s/line/row/\nwq\n' | ex -s` + skip + `f`},
		{name: "ed", needs: "ed", before: "seed f", script: `printf '1,5d\n$a\nend\n.\nw\nw g\nq\n' | ed -s f`},
		{name: "emacs --batch", needs: "emacs", before: "seed f", more: "it opens the file twice", script: `emacs --batch -Q f --eval '(progn (replace-string "line" "row") (setq make-backup-files nil) (save-buffer))'`},
		{name: "emacs --batch, backup kept", needs: "emacs", before: "seed f", more: "it opens the file twice", script: `emacs --batch -Q f --eval '(progn (setq backup-inhibited nil backup-enable-predicate (lambda (_) t)) (replace-string "line" "row") (save-buffer))'`},
		{name: "patch", needs: "patch diff", before: `seed f; sed s/7/seven/ f > "$OUT/g"; diff -u --label f --label f f "$OUT/g" > "$OUT/p" || true`, script: `
patch -s f "$OUT/p"; keep; patch -s -R f "$OUT/p"`, random: `\.o(\w{6})$`},
		{name: "patch -b", needs: "patch diff", before: `seed f; sed s/7/seven/ f > "$OUT/g"; diff -u --label f --label f f "$OUT/g" > "$OUT/p" || true`, script: `patch -s -b f "$OUT/p"`, random: `\.o(\w{6})$`},
	}
}
