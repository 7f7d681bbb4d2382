/** A process that follows a chain until it is killed. */
import { openHouse } from './house.js'

const [, , path = '', node = ''] = process.argv
openHouse(path, node, { blocksAhead: 3 })
process.send?.('up')
