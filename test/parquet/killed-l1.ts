/** A process that imports the bands in a folder until it is killed. A second start goes on where the index stands. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { isRefusal } from '../../src/format/refusal.js'
import { readL1Band } from '../../src/parquet/l1-band.js'
import { importL1 } from '../../src/parquet/l1-import.js'
import { openL1House } from './l1-chain.js'
import { targetOf } from './l1-target.js'

const [, , catalog = '', bands = ''] = process.argv
const house = openL1House(catalog)
process.send?.({ begun: house.index.topHeight() ?? -1 })
for (const name of readdirSync(bands).sort()) {
  const band = await readL1Band(join(bands, name))
  if (isRefusal(band)) throw new Error(band.message)
  const refusal = await importL1(join(bands, name), band, targetOf(house))
  if (refusal !== undefined) throw new Error(refusal.message)
}
await house.close()
