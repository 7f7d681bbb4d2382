/** Serves what a file describes (`Served` as JSON) through a server layer, and prints its port: `layer.js own|uws|node FILE`. */
import { readFileSync } from 'node:fs'
import { Handler, type Served } from './handler.js'
import { layers } from './layers.js'

const [name = '', file = ''] = process.argv.slice(2)
const open = layers[name]
if (open === undefined) throw new Error(`${name} is no server layer`)
const port = await open(new Handler(JSON.parse(readFileSync(file, 'utf8')) as Served))
process.stdout.write(`listening ${port}\n`)
