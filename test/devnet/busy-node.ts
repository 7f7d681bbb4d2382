/** A child process for tests: a node that makes blocks and forks until it is killed. Says its URL on stdout. */
import { pause } from '../../src/actor/clock.js'
import { Devnet } from '../../src/devnet/devnet.js'

const [, , dataPath = ''] = process.argv
const devnet = await Devnet.start({ host: '127.0.0.1', port: 0, blockMs: 0, dataPath })
process.stdout.write(`${devnet.url}\n`)
// Few enough that no anchor signed before the start grows too old.
for (let left = 15; left > 0; left -= 1) {
  const tip = devnet.mine()
  if (Number(tip.height) % 5 === 4) devnet.fork(3)
  // Lets posts in between.
  await pause(5)
}
