FROM debian
CMD ["nginx", "-g", "daemon off;"]
