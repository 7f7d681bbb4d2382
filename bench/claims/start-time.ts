import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fillWithObjects, timedStart } from '../cases/start.js'
import { emptyFolder } from '../kit/folders.js'
import { say } from '../kit/say.js'

const help = `start-time: from the start of the program to its line \`ready\`, after a kill, by what lies on the disk

  --objects N  contents of 440 bytes with their records in catalog and segments (1000)
  --records N  further payloads in segments that no record names (0)
  --starts N   how often (5)
  --folder F   where DATA_PATH of before lies, or is made and kept; without it one is made and removed
`

async function measure(folder: string, objects: number, records: number, starts: number): Promise<void> {
  if (!existsSync(join(folder, 'catalog'))) await fillWithObjects(folder, objects, records)
  // The first one makes keys.
  await timedStart(folder)
  const found: Awaited<ReturnType<typeof timedStart>>[] = []
  for (let round = 0; round < starts; round += 1) found.push(await timedStart(folder))
  const middle = (values: number[]): string =>
    `${(values.sort((one, other) => one - other)[values.length >> 1] ?? 0).toFixed(0)} ms, ` +
    `${(values[0] ?? 0).toFixed(0)} to ${(values.at(-1) ?? 0).toFixed(0)}`
  say(`${objects} objects, ${records} further records: ready after ${middle(found.map(({ ms }) => ms))}`)
  say(`processor time until then ${middle(found.map((one) => one.cpuMs))}`)
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    objects: { type: 'string' },
    records: { type: 'string' },
    starts: { type: 'string' },
    folder: { type: 'string' },
  },
})
if (values.help === true) say(help)
else {
  const folder = values.folder ?? emptyFolder('start-time')
  const [objects, records] = [Number(values.objects ?? 1000), Number(values.records ?? 0)]
  await measure(folder, objects, records, Number(values.starts ?? 5))
  if (values.folder === undefined) rmSync(folder, { recursive: true })
}
