// Writes files as Node programs do.
const fs = require('fs');
const { pipeline } = require('stream/promises');

// keep copies what is there for the test to know.
function keep() {
  const to = process.env.VERSIONS;
  if (to) fs.cpSync('.', to + '/' + String(fs.readdirSync(to).length).padStart(6, '0'), { recursive: true });
}

async function main() {
  fs.writeFileSync('a', 'one\n');
  keep();
  fs.writeFileSync('a', 'two\n', { mode: 0o600 });
  await fs.promises.writeFile('b.part', 'three\n'.repeat(100000));
  fs.renameSync('b.part', 'b');
  fs.appendFileSync('c', 'one\n');
  keep();
  await fs.promises.appendFile('c', 'two\n');
  await pipeline(fs.createReadStream('b'), fs.createWriteStream('d'));
  const fd = fs.openSync('e', 'w+');
  fs.writeSync(fd, 'hello');
  fs.writeSync(fd, 'J', 0);
  fs.ftruncateSync(fd, 4);
  console.log(fs.existsSync('e'), fs.statSync('e').size);
  fs.fsyncSync(fd);
  fs.closeSync(fd);
  fs.copyFileSync('b', 'f');
  fs.mkdirSync('g/h', { recursive: true });
  fs.cpSync('f', 'g/h/f');
  keep();
  fs.unlinkSync('d');
  fs.rmSync('g', { recursive: true });
  console.log(fs.readdirSync('.').sort().join(' '), fs.readFileSync('e', 'utf8'));
}
main().catch((e) => { console.error(e); process.exit(1); });
