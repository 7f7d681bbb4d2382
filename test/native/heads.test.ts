import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { random } from '../property.js'
import { scratch } from '../scratch.js'

const folder = scratch('heads')
const watched = ['-fsanitize=address,undefined', '-fno-sanitize-recover=all']

/** Cases for each program. */
const rounds = process.env.FUZZ_SECONDS === undefined ? '40000' : '2000000'

/** The fuzzing programs of this folder, and what each is given to. */
const fuzzers = {
  'answers-fuzz': 'the native reader of answers’ heads touches no byte too far',
  'heads-fuzz': 'the native readers of requests’ heads and chunks touch no byte too far',
  'packed-fuzz': 'heads that were packed come out as they were',
  'chains-fuzz': 'entries are found while their chains are split',
}

for (const [name, title] of Object.entries(fuzzers)) {
  const source = fileURLToPath(new URL(`../../../test/native/${name}.cc`, import.meta.url))
  const program = join(folder, name)
  const compiled = spawnSync('c++', ['-std=c++17', '-g1', '-O0', ...watched, source, '-o', program], {
    encoding: 'utf8',
  })
  const able = compiled.error === undefined && compiled.status === 0
  if (!able) t.comment(`no compiler with sanitizers: ${compiled.stderr ?? ''}`)

  t.test(title, { skip: !able }, (t) => {
    const { status, stdout, stderr } = spawnSync(program, [rounds, String(Math.floor(random() * 2 ** 32))], {
      encoding: 'utf8',
    })
    t.equal(status, 0, `${stdout}${stderr.slice(0, 4000)}`)
    t.end()
  })
}
