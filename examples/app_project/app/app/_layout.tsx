export { Slot as default } from "vendor-router";
