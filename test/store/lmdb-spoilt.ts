/** Opens databases, reads all of each and writes to it. Prints each before it does; an exception is no matter, a signal is. */
import { openEnvironment } from '../../src/store/lmdb.js'

for (const path of process.argv.slice(2)) {
  process.stdout.write(`${path}\n`)
  try {
    const environment = openEnvironment(path)
    const [one, other] = [environment.table('one'), environment.table('other')]
    for (const table of [one, other])
      for (const { value } of table.span({})) if (value.length > 2 ** 40) throw new Error('too long')
    for (let round = 0; round < 20; round += 1) {
      environment.write(() => {
        for (let n = 0; n < 300; n += 7) {
          one.remove(Buffer.from(`key ${round} ${n}`))
          one.put(Buffer.from(`key ${round} ${n}x`), Buffer.alloc(300, n))
        }
        other.put(Buffer.from(`large ${round} 0`), Buffer.alloc(20_000, round))
      })
    }
    await environment.close()
  } catch {
    // What LMDB notices is told to whoever asked.
  }
}
