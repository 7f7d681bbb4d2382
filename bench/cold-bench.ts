import { parseArgs } from 'node:util'
import { coldLine, coldReads } from './cold.js'

const help = `cold-bench: how late the first byte of what nobody has yet is behind the source's

  --ids N           reads that are measured, after as many that warm it up (200)
  --stream MIB      size of the large object that is streamed in the end (64)
  --rounds N        each with a gateway of its own (3)
`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    ids: { type: 'string', default: '200' },
    stream: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '3' },
  },
})
if (values.help === true) process.stdout.write(help)
else {
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const outcome = await coldReads(Number(values.ids), Number(values.stream) * 2 ** 20)
    process.stdout.write(`${coldLine(outcome)}\n`)
  }
}
