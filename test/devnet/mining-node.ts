/** A child process for tests: a node that mines blocks by itself until it is killed. Says its URL on stdout. */
import { Devnet } from '../../src/devnet/devnet.js'

const [, , dataPath = ''] = process.argv
const devnet = await Devnet.start({ host: '127.0.0.1', port: 0, blockMs: 50, dataPath })
process.stdout.write(`${devnet.url}\n`)
