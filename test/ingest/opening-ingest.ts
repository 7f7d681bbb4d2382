/** A process that follows a chain until it is killed, and reports how far it is. */
import { openHouse } from './house.js'

const [, , path = '', node = ''] = process.argv
const { following } = openHouse(path, node)
setInterval(() => process.send?.(following.height), 20)
