import{r as l}from"./part-RB7FNYXT.js";var i=t=>t.filter(l).sort((n,o)=>n-o),s=(t,n)=>t.length?t[Math.min(t.length-1,Math.floor(n*t.length))]:null;export{i as a,s as b};
